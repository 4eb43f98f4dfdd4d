// Package mesh connects the ranks of a group by channels of messages: in memory ([NewLocal]),
// over TCP ([JoinTCP]), and, for tests, through connections with planned faults.
//
// A rank holds a [Node]. It opens the routes that its program needs, all at once,
// and moves messages over the connections that it gets:
//
//	conns, err := node.Open(ctx, []mesh.Route{{Peer: right}, {Peer: left}})
//	node.Begin(seq, op)                  // for errors, and for who looks for ranks that disagree
//	err = conns[0].Post(&header, data)   // never waits for the peer
//	err = conns[1].Next(&header)         // waits for a message
//	err = conns[1].Read(data)            // straight to where it belongs
//	node.End()
//
// Any error of a connection ends the group: the call has told the others, and returns the first
// cause, which all of them get. Calls are not retried, and only the mesh as a whole is closed.
// Only misuse (a wrong length, a route that does not exist) is returned without ending
// anything.
//
// # In memory
//
// Ranks of one process are connected by pipes. A long message stays in its sender's memory
// until the receiver has copied it out, so that it is copied once; through a [Borrower] it can
// be folded where it lies, and is not copied at all. Short messages and posted ones are copied
// into the pipe, so that the sender goes on. Pipes have no goroutines, and only opened routes
// have pipes.
//
// # Over TCP
//
// Two ranks of different processes have one TCP connection per channel, which begins at the
// port of the higher one's process (internal/peerlink): the lower rank dials and gets an
// answer; both give up after the same time. On the wire a message is a header of 64 bytes
// (wire.go draws it) and its payload. The header has a CRC-32C, the payload a sum of package
// checksum, and messages are numbered. Damage, loss, repetition or reordering in transit ends
// the group with an error that wraps membership.ErrDamaged and says what happened where. No
// length is used before it was checked. Under TLS payloads have no sum. The sending goroutine
// writes header and payload in one system call, or a long payload in pieces that are summed
// while they are in the cache. The receiving goroutine reads a short message in one system
// call, a long one directly into its destination. There is another goroutine only while posted
// messages wait for room in the socket.
//
// If one goroutine does all the work of its rank ([SerialWaiter]), it waits in the kernel and
// not in the runtime's poller. With more ranks than cores this makes short operations take a
// third less time.
//
// Every hello and every header names the attempt and the group, so that peers of another run
// are refused. Bytes that are no message of this protocol are refused before anything is
// allocated for them.
//
// # By plan
//
// A [FaultPlan] says which messages go wrong and how; [NewFaulty] carries it
// out above a mesh and [FaultPlan.OnWire] below, reproducibly.
//
// # Ends
//
// A [Group], in practice a membership, decides which failure was first. A mesh reports the
// errors of its connections to it (closed, reset, no message) and ends all its connections when
// the group ends. Locks nest in two ways: TCP's around those of connections, and the fabric's
// around those of pipes. None is held while a failure is reported to the group, which may take
// a round trip.
package mesh
