package task

import (
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/transport"
)

// transit limits the bytes in transit between subtasks: rows that senders keep back, messages
// that are not stored yet, and rows that readers join. Budgets count the rows in inboxes and
// operators, but not the bytes in transit. The limits of the bytes in transit add up to less
// than the budget, however long batches are:
//
//	rows kept back                                       1/4 of the budget, 1/2 with one process
//	messages of this process that no inbox has stored    1/8, plus one message
//	messages that senders make and the disk writes       1/8
//	messages of other processes that wait to be stored   1/4, if there are other processes
//	pieces that readers join, and the joined batches     3/16
//
// Senders that wait at the gate wait for inboxes, which may wait for the disk but for nothing
// else.
type transit struct {
	gate         *transport.Gate // limits the bytes of messages that are sent and not stored
	keepBytes    int64           // maximum bytes that one sender to an exchange keeps back
	messageBytes int64           // maximum bytes of a message that has more than one row
	joinBytes    int64           // maximum bytes that a reader joins
}

// minShare is the minimum of keepBytes, messageBytes and joinBytes. With less, most time would be
// spent on moving single rows.
const minShare = 2 << 10

// newTransit divides the budget of a process among the exchanges of a plan, and as many others as more
// says.
func newTransit(p *plan.Plan, more int, budget int64, slots, workers, credits int) transit {
	exchanges := int64(more)
	for i := range p.Edges {
		if e := &p.Edges[i]; carriesRows(p, e) && e.Role != plan.Side {
			exchanges++
		}
	}
	if credits <= 0 {
		credits = transport.DefaultCredits
	}
	exchanges = max(exchanges, 1)
	// credits is the number of messages that other processes may together have in flight to
	// each inbox, but each process may have at least two.
	incoming := int64(max(credits, 2*(workers-1)))
	slot := budget / int64(max(slots, 1))
	t := transit{
		gate:         transport.NewGate(max(budget/8, 1)),
		keepBytes:    slot / (2 * exchanges),
		messageBytes: max(slot/(16*exchanges), minShare),
		joinBytes:    max(slot/(16*int64(max(len(p.Vertices), 1))), minShare),
	}
	if workers > 1 {
		t.keepBytes /= 2
		t.messageBytes = max(min(t.messageBytes, slot/(4*exchanges*incoming)), minShare)
	}
	t.keepBytes = max(min(t.keepBytes, keepBytes), minShare)
	return t
}
