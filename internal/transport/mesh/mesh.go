package mesh

import (
	"context"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// Header precedes every message. The executor sets its fields. On the wire, the mesh adds the
// attempt and the group, and the receiving mesh checks them.
type Header struct {
	Seq     uint64 // number of the operation within the group, from 1
	Hash    uint64 // hash of the operation, equal on all ranks: see Operation
	Lane    uint16 // lane of the sender's program; only used in errors
	Step    uint16 // index of the lane's sending step
	Segment uint32 // index of the segment within the step's message
	Offset  uint64 // number of bytes of the step's message that precede this segment
	Length  uint32 // number of bytes of this segment
	Absent  bool   // the value does not exist; Length is 0 and no other segment follows
}

// Operation describes the operation in which a rank is, for headers and errors.
type Operation = membership.Operation

// Route identifies a connection of a rank by the peer's rank and the number of the channel.
type Route struct{ Peer, Channel int }

// Conn is this rank's end of one channel to a peer. Messages are received in the order in which
// they were sent. At most one goroutine at a time may send, and at most one at a time may
// receive. When the group fails, all waiting and all later calls return the group's cause.
type Conn interface {
	// Send sends a message of h.Length bytes. When it returns, the caller may overwrite
	// payload. Send may wait until the peer receives the message.
	Send(h *Header, payload []byte) error

	// Post does the same as Send, but never waits for the peer: bytes that cannot be sent at
	// once are copied and sent in the background. Later messages are sent after these bytes.
	Post(h *Header, payload []byte) error

	// Next waits for the next message and stores its header in h. The connection checks the
	// message's magic number, version, attempt and group, and that its length does not exceed
	// the limit.
	Next(h *Header) error

	// Read fills dst with the next bytes of the message whose header Next returned. All bytes
	// of the message must be read before Next is called again.
	Read(dst []byte) error
}

// SerialWaiter is implemented by connections that can wait in a faster way while one goroutine
// does all the work of a rank.
type SerialWaiter interface {
	// Alone declares whether, from now until the next call of Alone, one goroutine at a time
	// does all sending and receiving on all connections of this rank. No other call on the
	// connection may be running during the call of Alone. Alone never waits, and affects only
	// speed.
	Alone(alone bool)
}

// Node gives a rank access to the other ranks of its group.
type Node interface {
	Rank() int
	Size() int

	// Open returns the connections of all routes. It makes the missing connections in parallel,
	// and waits until all exist. Both ranks of a route must open it. A connection stays open
	// until the group ends; opening a route again is cheap. After the connection timeout, Open
	// returns an error, and the group fails with the same error.
	Open(ctx context.Context, routes []Route) ([]Conn, error)

	// Begin records the operation in which this rank is, for errors and for the detection of
	// ranks that disagree. End records that the rank is in no operation. Neither allocates nor
	// waits.
	Begin(seq uint64, op *Operation)
	End()

	// Fail ends the group because of err, a failure that this rank found, and reports it to all
	// other ranks. It returns the group's cause: the first failure, which may not be err.
	Fail(err error) error

	// Failed returns a channel that is closed when the group has failed. Err returns the
	// group's cause, or nil if the group has not failed.
	Failed() <-chan struct{}
	Err() error
}
