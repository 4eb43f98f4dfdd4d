// Package mesh connects the ranks of a group by channels of messages: in memory
// ([NewLocal]), over TCP ([JoinTCP]), and, for tests, through connections that
// misbehave by plan.
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
// Any error of a connection is the end of the group: the call has told the others
// and returns the cause that all of them get, that of whoever was first. There is
// nothing to retry and nothing to close but the whole. Only misuse (a wrong length,
// a route that does not exist) is returned without ending anything.
//
// # In memory
//
// Ranks of one process are connected by pipes. A long message stays in its sender's
// memory until the receiver has copied it out, so that it is copied once; through a
// [Borrower] it can be folded where it lies, and is not copied at all. Short ones,
// and what is posted, are copied into the pipe, so that the sender goes on. There
// are no goroutines behind pipes, and none but those that were opened exist.
//
// # Over TCP
//
// Two ranks of different processes have one TCP connection per channel, which begins at
// the port of the higher one's process (internal/peerlink): the lower rank dials and is
// answered; both give up after the same time. On the
// wire a message is a header of 64 bytes (wire.go draws it) and its payload. The header
// has a CRC-32C, the payload a sum of package checksum, and messages are numbered: what
// was damaged, lost, repeated or reordered in transit ends the group with an error that
// says so and where, of the kind membership.ErrDamaged, and no length is believed before
// it was checked. Under TLS payloads have no sum. The goroutine that sends writes, header
// and payload in one system call, or a long payload in pieces that are summed while they
// are in the cache; the one that waits for a message reads, a short one in one system
// call, a long one straight into its destination. There is another goroutine only while posted messages wait
// for room in the socket.
//
// Where one goroutine does all that its rank does ([Loner]), it waits in the kernel and
// not in the runtime's poller, which among more ranks than cores makes short
// operations a third shorter.
//
// The attempt and the group in every hello and every header fence off whoever is of
// another run. What is no message of this protocol is refused before anything is
// allocated for it.
//
// # By plan
//
// A [FaultPlan] says in a line of text which messages go wrong and how; [NewFaulty]
// carries it out above a mesh and [FaultPlan.OnWire] below, the same way every time.
//
// # Ends
//
// A [Group], in practice a membership, decides which failure was first. A mesh
// tells it what its connections find (closed, reset, no message) and ends all its
// connections when the group ends. Locks nest in two ways, TCP's around those of
// connections and the fabric's around those of pipes; none is held while the group
// is told, which may take a round trip.
package mesh
