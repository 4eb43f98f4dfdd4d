package task

import (
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared"
)

// Observer is shown what a run computes, to compare it with what another run does.
type Observer interface {
	// Rows is shown rows, borrowed, that an operator emits under a shard, in order. Calls
	// for different shards or operators come from several goroutines at once, those for one
	// shard of an operator one after the other.
	Rows(node plan.NodeID, shard int, rows columnar.Batch)
	// Objects is shown the replicated objects of a queue after a superstep, as subtask 0
	// holds them, in the order of supersteps. The slice is valid during the call only.
	Objects(queue string, step int, held []shared.Fingerprint)
	// Sums is shown what an operator accumulated under a name in some shards, once they have
	// all ended. Calls come from several goroutines at once, for different shards.
	Sums(node plan.NodeID, name string, shards []int, sums []float64)
}

// Observed says that somebody wants to see what the run computes.
func (c *Context) Observed() bool { return c.observer != nil }

// ObserveObjects shows the replicated objects that a queue's subtask 0 holds after a
// superstep. It is for the bodies of queues, where the run is Observed.
func (c *Context) ObserveObjects(step int, held []shared.Fingerprint) {
	c.observer.Objects(c.Node.Queue, step, held)
}
