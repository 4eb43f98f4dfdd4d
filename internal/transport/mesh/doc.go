// Package mesh connects the ranks of a group by channels that carry messages: in memory
// ([NewLocal]), over TCP ([JoinTCP]) and, for tests, over connections with planned faults.
//
// Each rank has a [Node]. The rank opens all routes that its program needs in one call, and
// sends and receives messages over the connections that the call returns:
//
//	conns, err := node.Open(ctx, []mesh.Route{{Peer: right}, {Peer: left}})
//	node.Begin(seq, op)                  // for errors, and to find ranks that disagree
//	err = conns[0].Post(&header, data)   // never waits for the peer
//	err = conns[1].Next(&header)         // waits for a message
//	err = conns[1].Read(data)            // directly into its destination
//	node.End()
//
// Any error of a connection ends the group. The call in which the error occurs reports it to
// the other ranks, and then returns the group's cause: the first failure of the group, which
// all ranks get. Calls are not retried. Connections are not closed one by one, but together
// when the mesh is closed. Errors that report misuse (a wrong length, a route that does not
// exist) do not end the group.
//
// # In memory
//
// Ranks of one process are connected by pipes. A long message stays in its sender's memory
// until the receiver has copied it, so it is copied only once. Through a [Borrower], the
// receiver can use a long message in its sender's memory without a copy, for example to reduce
// it. Short messages and posted messages are copied into the pipe, so that the sender does not
// wait. Pipes have no goroutines, and only opened routes have pipes.
//
// # Over TCP
//
// Two ranks of different processes have one TCP connection per channel. The lower rank dials
// the port (internal/peerlink) of the higher rank's process, sends a hello and gets an answer.
// Both ranks stop waiting after the connection timeout. On the wire, a message consists of a
// header of 64 bytes (see wire.go) and the payload. The header has a CRC-32C, the payload has a
// checksum of package checksum, and messages are numbered. Damage, loss, repetition or
// reordering in transit ends the group with an error that wraps membership.ErrDamaged and
// describes the damage and the message. No length is used before the header has been checked.
// With TLS, payloads have no checksum. The sending goroutine writes header and payload in one
// system call; it writes a long payload in parts, which it sums while they are in the cache.
// The receiving goroutine reads a short message in one system call, and a long message directly
// into its destination. Only while posted messages wait for room in the socket's buffer does
// another goroutine write them.
//
// If one goroutine does all the work of a rank ([SerialWaiter]), it waits in system calls
// instead of the runtime's poller. If there are more ranks than cores, short operations then
// take a third less time.
//
// Every hello has the number of the attempt and the group's name, and every header has the
// number of the attempt and a hash of the name, so that peers of another run are refused. Bytes
// that are not a message of this protocol are refused before memory is allocated for them.
//
// # Planned faults
//
// A [FaultPlan] determines, reproducibly, which messages have faults and of which kinds.
// [NewFaulty] inserts the faults above a mesh, in the messages that are passed to the mesh.
// [FaultPlan.OnWire] inserts them below a mesh, in the bytes of its TCP connections.
//
// # Failures
//
// A [Group] decides which failure was first; outside of tests, it is a membership. A mesh
// reports the errors of its connections (closed, reset, not a message) to the group, and ends
// all its connections when the group ends. The lock of a TCP may be held while the lock of a
// connection is acquired, and the lock of a fabric while the lock of a pipe is acquired; no
// other locks nest. No lock is held while a failure is reported to the group, as the report may
// take a round trip.
package mesh
