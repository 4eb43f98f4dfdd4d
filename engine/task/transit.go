package task

import (
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/transport"
)

// transit bounds what is on its way between subtasks: rows that senders keep back,
// messages that nobody has stored yet, rows that readers join. Budgets count what
// waits in inboxes and operators; this comes on top of them, and is given so much
// that all of it together stays below the budget again, however long batches are:
//
//	rows kept back                                       1/4 of the budget, 1/2 with one process
//	messages of this process that no inbox has stored    1/8, and one message
//	messages that senders, and the disk, have at hand    1/8
//	messages of other processes that wait to be stored   1/4, where there are others
//	pieces that readers join, and what they make of them 3/16
//
// Who waits for room waits for inboxes, which wait for the disk at most.
type transit struct {
	gate    *transport.Gate // bytes of messages that may be sent and not stored
	keep    int64           // bytes that one sender to an exchange keeps back
	message int64           // bytes of a message, where one row has no more
	join    int64           // bytes that a reader joins
}

// leastShare is what a message, a join and a sender have in any case: with less, all
// time would go into moving single rows.
const leastShare = 2 << 10

// newTransit divides the budget of a process with some slots among what a plan has.
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
	// Others may have as many messages under way to each inbox as there are credits,
	// and two of each worker at least.
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
