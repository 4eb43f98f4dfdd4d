// Package remote carries batches between the worker processes of a job.
//
// A worker has one Network at its port. The network accepts connections as soon as it is made.
// When all workers have made networks, the caller passes the addresses of all of them to each
// network, which can then be used as a transport.Network:
//
//	n, err := remote.New(remote.Config{
//		Worker: 1, Workers: 3, Attempt: 2, Port: port,
//		Fail: func(err error) { cancel(err) },
//	})
//	defer n.Close()
//	tell(n.Address())                               // tell the address to the other workers
//	err = n.Connect(addresses)                      // the addresses of all workers
//	err = n.Listen(transport.Address{Edge: 3, Inbox: 7, Worker: 1}, receiver)
//	s, err := n.Dial(transport.Address{Edge: 3, Inbox: 2, Worker: 2})
//	err = s.Send(ctx, message)
//
// Address.Worker is the number of the worker that has an inbox. Messages to inboxes of the
// sending worker are passed by reference, through a transport.Mem.
//
// # Connections
//
// Every ordered pair of workers has at most one TCP connection. The first worker of the pair
// makes the connection when it first dials an inbox of the second worker. The connection
// carries messages to all inboxes of the second worker and, in the other direction, credits for
// these inboxes. It begins with the handshake of internal/peerlink. A process of another
// version, job, secret or attempt is refused with a reason; this does not make the network
// fail.
//
// # Flow
//
// When an inbox gets its receiver, it grants credits for some messages to every other worker.
// It grants more credits as the receiver takes messages. A message is sent only when there is a
// credit for it, so the goroutine that reads a connection never waits for a receiver: only the
// senders to a slow inbox have to wait. Send waits while the inbox has no receiver. For each
// connection, the number of bytes that are encoded but not written yet is bounded.
//
// Rows are sent as Arrow IPC record batches. Each schema is sent once on a connection, before
// the first rows with this schema (codec.go). frame.go describes the format of all frames.
// Frames are numbered and have checksums (checked.go). No length is used before it is checked
// and compared with a bound, and memory for rows is allocated as their bytes arrive. After
// damage, loss, repetition or reordering in transit, both sides get an error that wraps
// ErrDamaged: the side that detects it reports it to the other side before the connection ends.
//
// # Failures and closing
//
// If a connection breaks, carries invalid frames, or is silent for the detection time, the
// network fails: Config.Fail is called once with a PeerError, and waiting calls return the same
// error. Package internal/silence measures silence. A failed network keeps its other
// connections open until it is closed, so that other workers do not consider this worker lost.
//
// Close sends the queued messages and a good-bye on every connection, and waits for the
// answers. A worker answers a good-bye at once, so Close takes a round trip and does not wait
// until other workers have finished. If a worker has left, the networks of other workers do not
// fail; only sending to that worker is an error.
//
// # Parts
//
//   - Network (network.go): the tables of inboxes and connections, and the detection of lost
//     workers.
//   - conn (conn.go): either end of a connection after its handshake: queue, reader, writer,
//     good-bye.
//   - peer and sender (peer.go): the dialer's end. Senders wait at gates of package transport
//     for credits and for free bytes in the queue.
//   - incoming and inbox (incoming.go): the listener's end.
//
// Locks are acquired in this order: Network, then peer or incoming, then conn or gate. None of
// these locks is held during a write, a receive or a call of Fail.
package remote
