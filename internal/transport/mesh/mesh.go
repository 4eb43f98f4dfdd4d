package mesh

import (
	"context"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// Header stands before every message. Attempt and group are the mesh's, and are
// checked by it; the rest is the executor's.
type Header struct {
	Seq     uint64 // number of the operation within the group, from 1
	Hash    uint64 // of what the operation is, equal on all ranks: see Operation
	Lane    uint16 // of the sender's program, for messages to people
	Step    uint16 // which of the lane's sending steps
	Segment uint32 // of that step
	Offset  uint64 // bytes of the step's message before this segment
	Length  uint32 // bytes of this segment
	Absent  bool   // the value does not exist; Length is 0 and no other segment follows
}

// Operation is what a rank does, for headers and errors.
type Operation = membership.Operation

// Route is a connection wanted: the channel of a peer.
type Route struct{ Peer, Channel int }

// Conn is this rank's end of one channel to a peer. Messages come in the order
// sent. One goroutine at a time sends, and one receives. When the group fails, all
// calls under way and all later ones return its cause.
type Conn interface {
	// Send sends a message of h.Length bytes and returns when payload may be
	// overwritten. It may wait for the peer to receive.
	Send(h *Header, payload []byte) error

	// Post is Send but never waits for the peer: what cannot be sent at once is
	// copied and sent in the background, before anything that is sent later.
	Post(h *Header, payload []byte) error

	// Next waits for the next message and fills in its header, which has been
	// checked for what the connection knows (magic, version, attempt, group, bounds).
	Next(h *Header) error

	// Read fills dst with the next bytes of the message that Next announced; all
	// must be read before Next is called again.
	Read(dst []byte) error
}

// Loner is implemented by connections that wait in another way where a goroutine has
// nothing else to do.
type Loner interface {
	// Alone says whether in what follows, until it is called again, one goroutine at a
	// time both sends and receives on this connection and all others of its rank. No
	// other call may be under way. It never waits, and changes nothing but speed.
	Alone(alone bool)
}

// Node is one rank's access to the others of its group.
type Node interface {
	Rank() int
	Size() int

	// Open returns connections to all the routes, making those that do not exist, at
	// once and in parallel, and waiting until all are there. A route is opened by both
	// of its ranks. Connections live as long as the group; opening the same again is
	// cheap. It fails, and the group with it, after the connection timeout.
	Open(ctx context.Context, routes []Route) ([]Conn, error)

	// Begin says which operation this rank is in, for errors and for the detection of
	// ranks that disagree; End says that it is in none. Neither allocates nor waits.
	Begin(seq uint64, op *Operation)
	End()

	// Fail ends the group for a cause that this rank found, tells all others, and
	// returns the group's cause, which is that of whoever was first.
	Fail(err error) error

	// Failed is closed when the group has ended for a cause, which Err returns.
	Failed() <-chan struct{}
	Err() error
}
