// Package remote carries batches between the worker processes of a job.
//
// A worker has one Network at its port. It takes connections at once, is told where the others are when all
// listen, and is a transport.Network from then on:
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
// Address.Worker says where an inbox is. Messages to inboxes of the same worker go by
// reference, through a transport.Mem.
//
// # Connections
//
// Every ordered pair of workers has at most one TCP connection, made when the first
// of the two first dials an inbox of the other. It carries the messages to all inboxes
// there, and their credits back. It begins with the handshake of internal/peerlink:
// what is not of the same version, job, secret and attempt is refused in words, and
// strangers end nothing.
//
// # Flow
//
// An inbox grants every other worker some messages when it is listened to, and grants
// again what its receiver has taken. A message is only sent when there is a credit for
// it, so that who reads a connection never waits for a receiver: a slow inbox stops its
// own senders and nobody else. A message for an inbox that nobody listens to yet waits
// with its sender. What is encoded, but not written yet, is bounded per connection.
//
// Rows travel as Arrow IPC record batches; the schema goes ahead of the first ones on
// a connection (codec.go). frame.go has the bytes of all frames. They are numbered and
// have checksums (checked.go): no length is believed before it is checked and bounded,
// and memory for rows grows as their bytes arrive. What was damaged, lost, repeated or
// reordered in transit is an error that wraps ErrDamaged, on both sides: who finds it
// tells the other before the connection ends.
//
// # Ends
//
// A connection that breaks, carries garbage, or is silent for the detection time makes
// the network fail: Config.Fail is called once with a PeerError, and whoever waits gets
// the same. Silence is measured by internal/silence. The failed network keeps its other
// connections until it is closed, so that others do not take this worker for lost.
//
// Close flushes, says good-bye on every connection and waits for the answers. Whoever
// hears a good-bye answers at once, so that closing takes a round trip and waits for no
// one's work. A worker that has left is no failure of the others; only sending to it
// is an error.
//
// # Parts
//
//   - Network (network.go): the tables, and who is alive.
//   - conn (conn.go): a connection after its handshake, either end: queue, reader,
//     writer, good-bye.
//   - peer and sender (peer.go): the dialer's end. gate (gate.go): who waits for
//     credits and room.
//   - incoming and inbox (incoming.go): the listener's end.
//
// Locks nest in this order: Network, then peer or incoming, then conn or gate. None is
// held while something is written, received or failed.
package remote
