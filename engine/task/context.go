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
	// Here is the range of the vertex's subtasks that run in this process. These are all
	// subtasks if the plan runs in one part.
	Here sharding.Range
	Seed uint64
	// BatchRows is the number of rows that the batches of sources should have.
	BatchRows int
	Allocator columnar.Allocator
	// RowAllocator allocates batches that each hold all rows of a shard for a queue. Its memory
	// is freed when the last batch that refers to it is released. Views of the batch must not be
	// used after that.
	RowAllocator columnar.Allocator
	Logger       hclog.Logger
	// Memory is the budget of this slot: the bytes that it may hold before it must spill.
	Memory *Budget
	// SpillDir is the run's private directory for temporary files; it is removed
	// when the run ends.
	SpillDir string
	// Disk is the file system of the temporary files.
	Disk disk.FS

	side     [][]arrow.Record // by port; borrowed by the operator
	inputs   []*sideInput     // by port; nil for ports that are not side inputs
	collect  Collector
	observer Observer
	checked  bool // whether the run checks that borrowed rows do not change
	counters map[string]int64
	sums     map[string]*shardSums
	gang     *gang // only in contexts of queues
}

// Side returns the batches of a side (broadcast) input, in shard order. The batches are
// borrowed and must not be modified, as all subtasks of the process share them. The caller may
// modify the slice.
func (c *Context) Side(port int) []columnar.Batch { return arrowrows.Batches(c.side[port]) }

// ChecksRows reports whether the run checks that functions do not change what they borrow. The
// run itself checks batches. An operator that lends other data to functions must check that data
// itself, at the end of each shard.
func (c *Context) ChecksRows() bool { return c.checked }

// HoldSide counts n more bytes as memory of the side input at port, such as for a copy of its
// rows. They are counted until no subtask of the process needs the input any more. For memory
// that all subtasks share, HoldSide is called once, before the memory is allocated. It fails if
// the side inputs of the run together would exceed the run's memory budget.
func (c *Context) HoldSide(port int, n int64) error {
	s := c.inputs[port]
	if err := s.memory.hold(s, n); err != nil {
		return fmt.Errorf("side input %d, the rows of %s: %w", port, s.name, err)
	}
	return nil
}

// Random returns the random numbers for a purpose at a shard and step. Operators of a job that
// use the same purpose get the same numbers. To get different numbers, an operator uses a
// purpose from Builder.DrawPurpose of package engine, which contains its position in the graph.
func (c *Context) Random(purpose string, shard, step int) sharding.Random {
	return sharding.NewRandom(c.Seed, purpose, shard, step)
}

// Count adds delta to the operator's counter of that name, which the run's report shows.
func (c *Context) Count(name string, delta int64) {
	if c.counters == nil {
		c.counters = make(map[string]int64)
	}
	c.counters[name] += delta
}

// Accumulate adds v to the job's accumulator of that name. Within a shard, the values of an
// operator are added in the order of calls, and the sums of several operators in the order of
// their nodes. The sums of shards are then added along the aligned tree over shards. So the
// total has the same bits at any parallelism. Sums of integers are exact up to 2^53. Accumulate
// panics if the subtask does not own the shard.
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

// Collect passes borrowed rows of a shard to the run's Collector. A subtask must pass its shards
// in increasing order.
func (c *Context) Collect(shard int, rows columnar.Batch) error {
	if c.collect == nil {
		return errNoCollector
	}
	return c.collect.Collect(c.Node.ID, shard, rows)
}

// Report records a value of a superstep in the queue's series and in the run's progress. It is
// for the Loops of queues. Calls by subtasks other than 0, and by operators outside of queues,
// are ignored. Of several values for the same name and step, the last is kept.
func (c *Context) Report(name string, step int, value float64) {
	if c.gang != nil && c.Subtask == 0 {
		c.gang.record(name, step, value)
	}
}
