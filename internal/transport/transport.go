package transport

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
)

// ErrClosed is returned by calls on a network that is closed.
var ErrClosed = errors.New("the network is closed")

// Address identifies an inbox of a job. Edge is the index of an edge of the job's plan, and
// Inbox is the number of one of the edge's inboxes. An exchange has one inbox per receiving
// subtask, and the inbox Ends in each worker. A broadcast edge has one inbox per worker. An edge
// to a queue may also have the inboxes Moved and Taken.
type Address struct {
	Edge, Inbox int
	// Worker is the number of the job's process that has the inbox. It is 0 in a job of one
	// process.
	Worker int
}

// Ends is the inbox of an exchange that gets the end marks of source shards. All receiving
// subtasks of a worker share it, as most source shards send nothing to most subtasks.
const Ends = -1

// Taken is the inbox of an edge that gets the messages of subtasks that have read all rows which moved
// from this worker to them.
const Taken = -2

// Moved returns the number of the inbox with the rows of an edge that move to a subtask from a worker
// that has kept them.
func Moved(subtask int) int { return -3 - subtask }

// String returns the address, such as "edge 3, inbox 1".
func (a Address) String() string {
	switch {
	case a.Inbox == Ends:
		return fmt.Sprintf("edge %d, ends", a.Edge)
	case a.Inbox == Taken:
		return fmt.Sprintf("edge %d, word of rows that have moved", a.Edge)
	case a.Inbox < Taken:
		return fmt.Sprintf("edge %d, rows that move to subtask %d", a.Edge, Moved(a.Inbox))
	}
	return fmt.Sprintf("edge %d, inbox %d", a.Edge, a.Inbox)
}

// Message is a batch of rows of one source shard, the end mark of a source shard, or both.
type Message struct {
	// Shard is the source shard. Seq is the number of the message among the messages of the
	// shard to one inbox, counted from 0.
	Shard int
	Seq   int64
	// Rows are sorted by destination shard, and within a shard in the order of the source. Rows
	// is nil in a message that only ends a shard.
	Rows arrow.Record
	// To is the destination shard of all rows. It is -1 on a broadcast edge, where rows have no
	// destination shard. If Parts is set, To is not used.
	To int
	// Parts divides the rows by destination shard. The parts are in increasing order of these
	// shards.
	Parts []Part
	// Last says that this message ends the source shard.
	Last bool
	// Sent is used with Last. It is the number of messages with rows that the source shard has
	// sent to all inboxes of the edge on the receiving worker, including this message. These
	// messages may arrive after an end mark that is sent to the inbox Ends.
	Sent int64
	// SentRows is used with Last. It is the number of rows in the messages that Sent counts.
	SentRows int64
	// Gate, if it is not nil, is a gate that the sender has entered with the cost Cost. Release
	// leaves the gate with the same cost.
	Gate *Gate
	Cost int64
}

// Part is the range of a message's rows for the destination shard Shard. It begins at the End
// of the previous part, or at 0, and ends before End.
type Part struct{ Shard, End int }

// Release releases the message's reference to its rows, and leaves the message's gate.
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
	// Receive takes ownership of the message and of the reference to its rows. It is called
	// from one goroutine at a time. It must not wait for a reader of the rows. It returns no
	// error: if the receiver cannot store the message, it reports that to its run.
	Receive(m Message)
}

// Sender sends the messages of one subtask to one inbox. Only one goroutine uses it.
type Sender interface {
	// Send waits for a credit and passes the message on. It takes ownership of the reference to
	// the rows even if it returns an error, and the caller must not use the rows any more. The
	// error is the cause of ctx if ctx ends, or ErrClosed.
	Send(ctx context.Context, m Message) error
}

// Network connects senders with receivers.
type Network interface {
	// Listen makes r the receiver of the messages that are sent to addr.
	Listen(addr Address, r Receiver) error
	// Dial returns a sender to addr, which must have a receiver.
	Dial(addr Address) (Sender, error)
	// Close stops all receiving goroutines and releases the messages that were sent but not
	// received. After Close has returned, no receiver is called any more. Further calls of
	// Close do nothing.
	Close() error
}
