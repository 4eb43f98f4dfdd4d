// Package remote carries batches between the worker processes of a job.
//
// A worker has one Network at its port. The network accepts connections at once. It gets the
// addresses of the others when all listen, and is a transport.Network from then on:
//
//	n, err := remote.New(remote.Config{
//		Worker: 1, Workers: 3, Attempt: 2, Port: port,
//		Fail: func(err error) { cancel(err) },
//	})
//	defer n.Close()
//	tell(n.Address())
//	err = n.Connect(addresses)                      // of all workers
//	err = n.Listen(transport.Address{Edge: 3, Inbox: 7, Worker: 1}, receiver)
//	s, err := n.Dial(transport.Address{Edge: 3, Inbox: 2, Worker: 2})
//	err = s.Send(ctx, message)
//
// Address.Worker is the worker of an inbox. Messages to inboxes of the same worker are passed
// by reference, through a transport.Mem.
//
// # Connections
//
// Every ordered pair of workers has at most one TCP connection, made when the first of the two
// first dials an inbox of the other. It carries the messages to all inboxes there, and their
// credits back. It begins with the handshake of internal/peerlink: a process of another
// version, job, secret or attempt is refused with a reason, and ends nothing.
//
// # Flow
//
// An inbox grants credits for some messages to every other worker when it gets its receiver,
// and grants more as the receiver takes messages. A message is only sent when there is a credit
// for it, so that the reader of a connection never waits for a receiver: a slow inbox stops
// only its own senders. A message for an inbox without a receiver waits with its sender. The
// bytes that are encoded but not written yet are bounded per connection.
//
// Rows are sent as Arrow IPC record batches; the schema is sent before the first ones on a
// connection (codec.go). frame.go has the format of all frames. Frames are numbered and have
// checksums (checked.go): no length is used before it is checked and bounded, and memory for
// rows grows as their bytes arrive. Damage, loss, repetition or reordering in transit is an
// error that wraps ErrDamaged, on both sides: the side that finds it tells the other before the
// connection ends.
//
// # Ends
//
// A connection that breaks, carries garbage, or is silent for the detection time makes the
// network fail: Config.Fail is called once with a PeerError, and waiting calls return the same
// error. Silence is measured by internal/silence. The failed network keeps its other
// connections until it is closed, so that others do not take this worker for lost.
//
// Close flushes, sends a good-bye on every connection and waits for the answers. A worker
// answers a good-bye at once, so that closing takes a round trip and does not wait for the work
// of others. A worker that has left is no failure of the others; only sending to it is an
// error.
//
// # Parts
//
//   - Network (network.go): the tables, and the detection of lost workers.
//   - conn (conn.go): a connection after its handshake, either end: queue, reader,
//     writer, good-bye.
//   - peer and sender (peer.go): the dialer's end. They wait for credits and room at gates of
//     package transport.
//   - incoming and inbox (incoming.go): the listener's end.
//
// Locks nest in this order: Network, then peer or incoming, then conn or gate. None is held
// during a write, a receive or a call of Fail.
package remote
