package task

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared"
)

// Context is what one operator of one subtask knows of its surroundings. It is
// used from the subtask's goroutine only, unless a method says otherwise.
type Context struct {
	// Context ends when the job is cancelled or another subtask failed. User
	// functions that may block must watch it.
	context.Context

	Node        plan.Node
	Subtask     int
	Parallelism int
	Shards      int
	// Range holds the shards the subtask owns.
	Range shared.Range
	Seed  uint64
	// BatchRows is the number of rows sources aim at per batch.
	BatchRows int
	Allocator memory.Allocator
	Logger    hclog.Logger
	// Memory accounts what this slot may hold before it spills.
	Memory *Budget
	// SpillDir is the attempt's private directory for temporary files; it is
	// removed when the attempt ends.
	SpillDir string

	side    [][]arrow.Record // by port; borrowed by the operator
	metrics *operatorMetrics
	worker  *worker
}

// Side returns the batches of a side (broadcast) input, in shard order. They are
// shared by all subtasks of the process, borrowed and must not be modified.
func (c *Context) Side(port int) []arrow.Record { return c.side[port] }

// Random returns the draws for a purpose at a shard and step.
func (c *Context) Random(purpose string, shard, step int) shared.Random {
	return shared.NewRandom(c.Seed, purpose, shard, step)
}
