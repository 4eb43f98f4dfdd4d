package task

import (
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared"
)

// Observer is shown what a run computes, to compare it with what another run does.
type Observer interface {
	// Rows gets the rows, borrowed, that an operator emits under a shard, in order. Calls for
	// one shard of an operator come one after the other; all others may come from several
	// goroutines at once.
	Rows(node plan.NodeID, shard int, rows columnar.Batch)
	// Objects gets the replicated objects of a queue after a superstep, as subtask 0 holds
	// them, in the order of supersteps. The slice is valid during the call only.
	Objects(queue string, step int, held []shared.Fingerprint)
	// Sums gets what an operator accumulated under a name in some shards, once they have all
	// ended. Calls come from several goroutines at once, for different shards.
	Sums(node plan.NodeID, name string, shards []int, sums []float64)
}

// Observed reports whether the run has an Observer.
func (c *Context) Observed() bool { return c.observer != nil }

// ObserveObjects shows the replicated objects that a queue's subtask 0 holds after a
// superstep. It is for the bodies of queues, where the run is Observed.
func (c *Context) ObserveObjects(step int, held []shared.Fingerprint) {
	c.observer.Objects(c.Node.Queue, step, held)
}
