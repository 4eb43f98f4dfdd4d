package mesh

import (
	"context"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// Header precedes every message. The mesh adds and checks attempt and group; the executor sets
// the fields here.
type Header struct {
	Seq     uint64 // number of the operation within the group, from 1
	Hash    uint64 // hash of the operation, equal on all ranks: see Operation
	Lane    uint16 // lane of the sender's program, for errors
	Step    uint16 // which of the lane's sending steps
	Segment uint32 // of that step
	Offset  uint64 // bytes of the step's message before this segment
	Length  uint32 // bytes of this segment
	Absent  bool   // the value does not exist; Length is 0 and no other segment follows
}

// Operation describes what a rank is doing, for headers and errors.
type Operation = membership.Operation

// Route names a connection: a peer and a channel.
type Route struct{ Peer, Channel int }

// Conn is this rank's end of one channel to a peer. Messages come in the order
// sent. One goroutine at a time sends, and one receives. When the group fails, all
// calls under way and all later ones return its cause.
type Conn interface {
	// Send sends a message of h.Length bytes and returns when payload may be
	// overwritten. It may wait for the peer to receive.
	Send(h *Header, payload []byte) error

	// Post is Send that never waits for the peer: bytes that cannot be sent at once are copied
	// and sent in the background, before anything that is sent later.
	Post(h *Header, payload []byte) error

	// Next waits for the next message and fills in its header. The connection has checked what
	// it knows: magic, version, attempt, group, bounds.
	Next(h *Header) error

	// Read fills dst with the next bytes of the message that Next announced; all
	// must be read before Next is called again.
	Read(dst []byte) error
}

// SerialWaiter is implemented by connections that can wait in a faster way if their goroutine has
// nothing else to do.
type SerialWaiter interface {
	// Alone says whether, until it is called again, one goroutine at a time does all sending
	// and receiving on all connections of this rank. No other call may be under way. Alone
	// never waits, and changes nothing but speed.
	Alone(alone bool)
}

// Node is one rank's access to the others of its group.
type Node interface {
	Rank() int
	Size() int

	// Open returns the connections of all routes. It makes missing ones in parallel, and waits
	// until all exist. Both ranks of a route open it. Connections live as long as the group;
	// opening the same again is cheap. After the connection timeout Open fails, and the group
	// with it.
	Open(ctx context.Context, routes []Route) ([]Conn, error)

	// Begin records the operation of this rank, for errors and for finding ranks that disagree;
	// End records that it is in none. Neither allocates nor waits.
	Begin(seq uint64, op *Operation)
	End()

	// Fail ends the group for a cause that this rank found, and tells all others. It returns
	// the group's cause, which is the first one.
	Fail(err error) error

	// Failed returns a channel that is closed when the group has ended for a cause; Err returns
	// the cause.
	Failed() <-chan struct{}
	Err() error
}
