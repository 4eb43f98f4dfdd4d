package transport

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
)

// ErrClosed is returned when a network that was closed is used.
var ErrClosed = errors.New("the network is closed")

// Address names an inbox of a job: an edge of its plan, by index, and which of
// the edge's inboxes. Exchanges have one inbox per receiving subtask and one, Ends,
// per worker; broadcast edges one per worker.
type Address struct {
	Edge, Inbox int
	// Worker is the process of the job where the inbox is, by number; always 0 where
	// there is one process.
	Worker int
}

// Ends is the inbox of an exchange for the ends of source shards. It is shared by all receiving
// subtasks of a worker, as most source shards send nothing to most subtasks.
const Ends = -1

// String writes the address as "edge 3, inbox 1".
func (a Address) String() string {
	if a.Inbox == Ends {
		return fmt.Sprintf("edge %d, ends", a.Edge)
	}
	return fmt.Sprintf("edge %d, inbox %d", a.Edge, a.Inbox)
}

// Message is a batch of rows of one source shard, the end of one, or both.
type Message struct {
	// Shard is the source shard, Seq the number of the message within it and the
	// inbox, from 0.
	Shard int
	Seq   int64
	// Rows are sorted by destination shard, and within a shard in the order of the source. Rows
	// is nil in a message that only ends a shard.
	Rows arrow.Record
	// To is the destination shard of all rows, -1 on a broadcast edge, where rows have no
	// destination shard. If Parts is set, To has no meaning.
	To int
	// Parts cuts the rows by destination shard, in increasing order.
	Parts []Part
	// Last says that this message ends the source shard.
	Last bool
	// Sent is, with Last, the number of messages with rows of the source shard that
	// were sent to all inboxes of the edge on the receiving worker, this one
	// included. They may arrive after an end that goes to the inbox Ends.
	Sent int64
	// SentRows is, with Last, the number of rows in those messages.
	SentRows int64
	// Gate, if set, is left with Cost when the message is released. The sender has entered it
	// with the same cost.
	Gate *Gate
	Cost int64
}

// Part is the rows of a message for one destination shard: from the End of the previous part up
// to its own End.
type Part struct{ Shard, End int }

// Release gives up the message's reference to its rows, and leaves its gate.
func (m *Message) Release() {
	if m.Gate != nil {
		m.Gate.Leave(m.Cost)
		m.Gate = nil
	}
	if m.Rows != nil {
		m.Rows.Release()
		m.Rows = nil
	}
}

// Receiver stores the messages of one inbox.
type Receiver interface {
	// Receive takes the message and the reference to its rows. It is called from one goroutine
	// at a time, and neither fails nor waits for a reader of the rows: the receiver reports
	// failures of storing to its run.
	Receive(m Message)
}

// Sender carries the messages of one subtask to one inbox. It is used from one
// goroutine.
type Sender interface {
	// Send waits for a credit and hands the message over, with the reference to
	// its rows, also when it fails: the caller must not use them any more. It
	// fails with the cause of ctx when that ends, or with ErrClosed.
	Send(ctx context.Context, m Message) error
}

// Network connects senders with receivers.
type Network interface {
	// Listen makes r the receiver of an address.
	Listen(addr Address, r Receiver) error
	// Dial returns a sender to an address with a receiver.
	Dial(addr Address) (Sender, error)
	// Close stops all receiving and releases what was sent but not received. When
	// it returns no receiver will be called any more. Calling it again does nothing.
	Close() error
}
