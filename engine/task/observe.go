package task

import (
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared"
)

// Observer is called with what a run computes, so that it can be compared with another run.
type Observer interface {
	// Rows gets the rows, borrowed, that an operator emits under a shard, in order. Calls for
	// the same operator and shard come one after the other. Other calls may come from several
	// goroutines at once.
	Rows(node plan.NodeID, shard int, rows columnar.Batch)
	// Objects gets the replicated objects that subtask 0 of a queue holds after a superstep. It
	// is called in the order of supersteps. The slice is valid only during the call.
	Objects(queue string, step int, held []shared.Fingerprint)
	// Sums gets the sums that an operator accumulated under a name for some shards, once all
	// shards have ended. Calls for different shards may come from several goroutines at once.
	Sums(node plan.NodeID, name string, shards []int, sums []float64)
}

// Observed reports whether the run has an Observer.
func (c *Context) Observed() bool { return c.observer != nil }

// ObserveObjects passes to the Observer the replicated objects that a queue's subtask 0 holds
// after a superstep. It is for the Loops of queues, and may be called only if Observed is true.
func (c *Context) ObserveObjects(step int, held []shared.Fingerprint) {
	c.observer.Objects(c.Node.Queue, step, held)
}
