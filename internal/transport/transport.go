package transport

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
)

// ErrClosed is returned by calls on a network that is closed.
var ErrClosed = errors.New("the network is closed")

// Address identifies an inbox of a job: Edge is the index of an edge of its plan, and Inbox is
// one of the edge's inboxes. An exchange has one inbox per receiving subtask, and per worker
// the inbox Ends. A broadcast edge has one inbox per worker.
type Address struct {
	Edge, Inbox int
	// Worker is the number of the job's process that has the inbox. It is 0 in a job of one
	// process.
	Worker int
}

// Ends is the inbox of an exchange that gets the end marks of source shards. All receiving
// subtasks of a worker share it, as most source shards send nothing to most subtasks.
const Ends = -1

// String returns the address, such as "edge 3, inbox 1".
func (a Address) String() string {
	if a.Inbox == Ends {
		return fmt.Sprintf("edge %d, ends", a.Edge)
	}
	return fmt.Sprintf("edge %d, inbox %d", a.Edge, a.Inbox)
}

// Message is a batch of rows of one source shard, the end mark of a source shard, or both.
type Message struct {
	// Shard is the source shard. Seq numbers, from 0, the messages of the shard to one inbox.
	Shard int
	Seq   int64
	// Rows are sorted by destination shard, and within a shard in the order of the source. Rows
	// is nil in a message that only ends a shard.
	Rows arrow.Record
	// To is the destination shard of all rows, -1 on a broadcast edge, where rows have no
	// destination shard. If Parts is set, To is not used.
	To int
	// Parts cuts the rows by destination shard, in increasing order.
	Parts []Part
	// Last says that this message ends the source shard.
	Last bool
	// Sent is used with Last. It is the number of messages with rows that the source shard has
	// sent to all inboxes of the edge on the receiving worker, this message included. They may
	// arrive after an end mark that goes to the inbox Ends.
	Sent int64
	// SentRows is used with Last. It is the number of rows in the messages that Sent counts.
	SentRows int64
	// Gate may be nil. Otherwise the sender has entered it with Cost, and Release leaves it
	// with the same cost.
	Gate *Gate
	Cost int64
}

// Part is the range of a message's rows for one destination shard: from the End of the previous
// part, or 0, up to its own End.
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
	// at a time. It must not wait for a reader of the rows. It returns no error: if storing
	// fails, the receiver reports that to its run.
	Receive(m Message)
}

// Sender carries the messages of one subtask to one inbox. It is used from one
// goroutine.
type Sender interface {
	// Send waits for a credit and hands the message over. Even when it fails, it takes the
	// reference to the rows, and the caller must not use them any more. It returns the cause of
	// ctx when ctx ends, or ErrClosed.
	Send(ctx context.Context, m Message) error
}

// Network connects senders with receivers.
type Network interface {
	// Listen makes r the receiver of the messages to addr.
	Listen(addr Address, r Receiver) error
	// Dial returns a sender to addr, which must have a receiver.
	Dial(addr Address) (Sender, error)
	// Close stops all receiving and releases what was sent but not received. After Close has
	// returned no receiver is called any more. Calling it again does nothing.
	Close() error
}
