package task

import (
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/transport"
)

// transit bounds the bytes on their way between subtasks: rows that senders keep back, messages
// that are not stored yet, rows that readers join. Budgets count the rows in inboxes and
// operators. The bytes in transit come on top of them. Their bounds add up to less than the
// budget, however long batches are:
//
//	rows kept back                                       1/4 of the budget, 1/2 with one process
//	messages of this process that no inbox has stored    1/8, and one message
//	messages that senders, and the disk, have at hand    1/8
//	messages of other processes that wait to be stored   1/4, where there are others
//	pieces that readers join, and what they make of them 3/16
//
// Senders that wait for room wait for inboxes, which wait for the disk at most.
type transit struct {
	gate    *transport.Gate // bounds the bytes of messages that are sent and not stored
	keep    int64           // bytes that one sender to an exchange keeps back
	message int64           // bytes of a message, unless one row has more
	join    int64           // bytes that a reader joins
}

// leastShare is the minimum for a message, a join and a sender: with less, all time would go
// into moving single rows.
const leastShare = 2 << 10

// newTransit divides the budget of a process among the exchanges of a plan.
func newTransit(p *plan.Plan, budget int64, slots, workers, credits int) transit {
	exchanges := int64(0)
	for i := range p.Edges {
		if e := &p.Edges[i]; carriesRows(p, e) && e.Role != plan.Side {
			exchanges++
		}
	}
	if credits <= 0 {
		credits = transport.DefaultCredits
	}
	exchanges = max(exchanges, 1)
	// Other processes may have as many messages in flight to each inbox as there are credits,
	// and at least two per worker.
	incoming := int64(max(credits, 2*(workers-1)))
	slot := budget / int64(max(slots, 1))
	t := transit{
		gate:    transport.NewGate(max(budget/8, 1)),
		keep:    slot / (2 * exchanges),
		message: max(slot/(16*exchanges), leastShare),
		join:    max(slot/(16*int64(max(len(p.Vertices), 1))), leastShare),
	}
	if workers > 1 {
		t.keep /= 2
		t.message = max(min(t.message, slot/(4*exchanges*incoming)), leastShare)
	}
	t.keep = max(min(t.keep, keepBytes), leastShare)
	return t
}
