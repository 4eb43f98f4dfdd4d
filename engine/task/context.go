package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Context is the environment of one operator of one subtask. It is used from the subtask's
// goroutine only, unless a method says otherwise.
type Context struct {
	// Context ends when the job is cancelled or another subtask failed. User
	// functions that may block must watch it.
	context.Context

	Node        plan.Node
	Subtask     int
	Parallelism int
	Shards      int
	// Range holds the shards the subtask owns.
	Range sharding.Range
	// Here are the subtasks of the vertex that run in this process; all of them if the plan
	// runs in one part.
	Here sharding.Range
	Seed uint64
	// BatchRows is the number of rows sources aim at per batch.
	BatchRows int
	Allocator columnar.Allocator
	// RowAllocator is for the rows of a shard, in one batch, that a queue holds. Its memory is
	// freed when the last batch that refers to it is released; views of it must not be used
	// after that.
	RowAllocator columnar.Allocator
	Logger       hclog.Logger
	// Memory is the budget of what this slot may hold before it spills.
	Memory *Budget
	// SpillDir is the run's private directory for temporary files; it is removed
	// when the run ends.
	SpillDir string
	// Disk is the file system of the temporary files.
	Disk disk.FS

	side     [][]arrow.Record // by port; borrowed by the operator
	inputs   []*sideInput     // by port, nil for others
	collect  Collector
	observer Observer
	checked  bool // the rows that operators borrow
	counters map[string]int64
	sums     map[string]*shardSums
	gang     *gang // of contexts of queues
}

// Side returns the batches of a side (broadcast) input, in shard order. They are shared by all
// subtasks of the process, borrowed and must not be modified. The caller may change the slice.
func (c *Context) Side(port int) []columnar.Batch { return arrowrows.Batches(c.side[port]) }

// ChecksRows says that the run looks for functions that change what they borrow. The run checks
// batches. Operators that lend something else to functions check it themselves, at the end of
// each shard.
func (c *Context) ChecksRows() bool { return c.checked }

// HoldSide accounts for n more bytes that the process holds of a side input, such as a copy of
// its rows, for as long as its subtasks need the input. For memory that all of them share, it
// is called once, before the memory is allocated. It fails if the side inputs of the run would
// not fit together.
func (c *Context) HoldSide(port int, n int64) error {
	s := c.inputs[port]
	if err := s.memory.hold(s, n); err != nil {
		return fmt.Errorf("side input %d, the rows of %s: %w", port, s.name, err)
	}
	return nil
}

// Random returns the draws for a purpose at a shard and step. The same purpose draws the same
// numbers in any operator of the job. Builder.DrawPurpose of package engine makes a purpose
// that contains the operator's place in the graph.
func (c *Context) Random(purpose string, shard, step int) sharding.Random {
	return sharding.NewRandom(c.Seed, purpose, shard, step)
}

// Count adds to a counter of the operator, which the run's report shows.
func (c *Context) Count(name string, delta int64) {
	if c.counters == nil {
		c.counters = make(map[string]int64)
	}
	c.counters[name] += delta
}

// Accumulate adds v to the job's accumulator of that name. Values are added per shard in the
// order of calls, and values of several operators in the order of their nodes. Then shards are
// added up the aligned tree. So the sum has the same bits at any parallelism. Sums of integers
// are exact up to 2^53. The subtask must own the shard.
func (c *Context) Accumulate(name string, shard int, v float64) {
	if !c.Range.Contains(shard) {
		panic(fmt.Errorf("accumulate %q under shard %d: the subtask owns %v", name, shard, c.Range))
	}
	s := c.sums[name]
	if s == nil {
		if c.sums == nil {
			c.sums = make(map[string]*shardSums)
		}
		s = newShardSums(c.Range)
		c.sums[name] = s
	}
	s.add(shard, v)
}

// errNoCollector is the error of Collect in a run without a Collector.
var errNoCollector = errors.New("this run takes no collected rows")

// Collect passes borrowed rows of a shard to the run's Collector. Shards come in increasing
// order within the subtask.
func (c *Context) Collect(shard int, rows columnar.Batch) error {
	if c.collect == nil {
		return errNoCollector
	}
	return c.collect.Collect(c.Node.ID, shard, rows)
}

// Report records a value of a superstep in the queue's series and in the run's progress. It is
// for the bodies of queues. Values of subtasks other than 0 are ignored, and so are those of
// contexts outside of queues. If there are several values for one name and step, the last
// counts.
func (c *Context) Report(name string, step int, value float64) {
	if c.gang != nil && c.Subtask == 0 {
		c.gang.record(name, step, value)
	}
}
