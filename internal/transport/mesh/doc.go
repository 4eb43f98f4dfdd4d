// Package mesh connects the ranks of a group by channels that carry messages: in memory
// ([NewLocal]), over TCP ([JoinTCP]), and, for tests, over connections with planned faults.
//
// A rank has a [Node]. It opens all the routes that its program needs in one call, and sends
// and receives messages over the connections that the call returns:
//
//	conns, err := node.Open(ctx, []mesh.Route{{Peer: right}, {Peer: left}})
//	node.Begin(seq, op)                  // for errors, and to find ranks that disagree
//	err = conns[0].Post(&header, data)   // never waits for the peer
//	err = conns[1].Next(&header)         // waits for a message
//	err = conns[1].Read(data)            // directly into its destination
//	node.End()
//
// Any error of a connection ends the group. The call on which it occurred reports it to the
// other ranks, and then returns the group's cause: the first failure of the group, which all
// ranks get. Calls are not retried. Connections are not closed one by one, but all together
// with the mesh. Errors of misuse (a wrong length, a route that does not exist) are returned
// without ending the group.
//
// # In memory
//
// Ranks of one process are connected by pipes. A long message stays in its sender's memory
// until the receiver has copied it, so it is copied once. Through a [Borrower] the receiver can
// reduce a long message in its sender's memory, without a copy. Short messages and posted
// messages are copied into the pipe, so the sender does not wait. Pipes have no goroutines, and
// only opened routes have pipes.
//
// # Over TCP
//
// Two ranks of different processes have one TCP connection per channel. The lower rank dials
// the port (internal/peerlink) of the higher rank's process, sends a hello and gets an answer.
// Both ranks give up after the connection timeout. On the wire a message is a header of 64
// bytes (see wire.go) and its payload. The header has a CRC-32C, the payload has a checksum of
// package checksum, and messages are numbered. Damage, loss, repetition or reordering in
// transit ends the group with an error that wraps membership.ErrDamaged and describes the
// damage and the message. No length is used before it was checked. Under TLS, payloads have no
// checksum. The sending goroutine writes header and payload in one system call, or a long
// payload in parts that are summed while they are in the cache. The receiving goroutine reads a
// short message in one system call, and a long message directly into its destination. Only
// while posted messages wait for room in the socket's buffer does another goroutine write them.
//
// A goroutine that does all the work of its rank ([SerialWaiter]) waits in system calls and not
// in the runtime's poller. With more ranks than cores, short operations then take a third less
// time.
//
// Every hello and every header has the number of the attempt and the group's name or its hash,
// so that peers of another run are refused. Bytes that are not a message of this protocol are
// refused before memory is allocated for them.
//
// # Planned faults
//
// A [FaultPlan] determines, reproducibly, which messages have faults and of which kinds.
// [NewFaulty] makes the faults above a mesh, in the messages that are handed to it.
// [FaultPlan.OnWire] makes them below a mesh, in the bytes of its TCP connections.
//
// # Failures
//
// A [Group], which is a membership outside of tests, decides which failure was first. A mesh
// reports the errors of its connections (closed, reset, not a message) to the group, and ends
// all its connections when the group ends. The lock of a TCP may be held when a lock of a
// connection is taken, and the lock of a fabric when a lock of a pipe is taken; no other locks
// nest. No lock is held while a failure is reported to the group, as that may take a round
// trip.
package mesh
