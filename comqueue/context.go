package comqueue

import (
	"context"
	"sync/atomic"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// ComContext gives the functions of a queue access to the subtask that they run on. It belongs
// to that subtask's goroutine and is valid until the queue ends.
type ComContext struct {
	task    *engine.Context
	session string
	objects *shared.Objects
	step    int
	shard   atomic.Int32 // shard being worked on, -1 for none; atomic, as other goroutines read it for errors
	data    []PartitionedData
	blocks  *holdings
	reports *reports
	misuse  error // misuse of reports since the stage began
	rounds  rounds
}

// TaskID returns the number of the subtask, 0 to NumTask()-1.
func (c *ComContext) TaskID() int { return c.task.Subtask }

// NumTask returns the number of subtasks.
func (c *ComContext) NumTask() int { return c.task.Parallelism }

// StepNo returns the number of the superstep, from 1. In the functions that close the queue it
// is the number of the last superstep.
func (c *ComContext) StepNo() int { return c.step }

// SessionID returns the name of the queue's session, which is the scope of its objects.
func (c *ComContext) SessionID() string { return c.session }

// Shards returns the shards that the subtask owns.
func (c *ComContext) Shards() sharding.Range { return c.task.Range }

// TotalShards returns S, the number of shards of the job.
func (c *ComContext) TotalShards() int { return c.task.Shards }

// Context returns a context that ends when the job is cancelled or when another part of it
// fails. Functions that may run long or block must watch it.
func (c *ComContext) Context() context.Context { return c.task.Context }

// Objects returns the subtask's objects, for the keys of package shared.
func (c *ComContext) Objects() *shared.Objects { return c.objects }

// Rand returns the random numbers for a purpose and a shard in this superstep and, in an inner
// loop, in this round. They depend only on the job's seed, the queue's name, the purpose, the
// shard, the superstep, the rounds of the inner loops and the index of the number. Stages of a
// queue that name the same purpose draw the same numbers; other queues of the job draw other
// numbers.
func (c *ComContext) Rand(purpose string, shard int) sharding.Random {
	return sharding.NewRandom(c.rounds.seed(), purpose, shard, c.step)
}

// Empty reports whether no partitioned data of the queue has rows in the shard.
// A queue without partitioned data has no empty shard.
func (c *ComContext) Empty(shard int) bool {
	for _, d := range c.data {
		if d.Get(c, shard).Rows() > 0 {
			return false
		}
	}
	return len(c.data) > 0
}

// Report records subtask 0's value for this superstep, such as a loss; calls on other subtasks
// are ignored. The value goes to progress, metrics and the training record that comes with the
// result. If a name has several values, the last one counts. It is an error to use a name that
// ReportSum or ReportMax uses in the same superstep.
func (c *ComContext) Report(name string, value float64) {
	if c.TaskID() != 0 {
		return
	}
	if err := c.reports.note(name, c.step); err != nil && c.misuse == nil {
		c.misuse = err
	}
	c.task.Report(name, c.step, value)
}

// ReportSum adds a shard's value to a sum over all shards for this superstep,
// folded up the tree over shards. Call it from the stages of a superstep, at most
// once per name and shard, in increasing order of shards.
func (c *ComContext) ReportSum(name string, shard int, value float64) {
	c.report(name, foldSum, shard, value)
}

// ReportMax does the same as ReportSum, with the maximum in place of the sum.
func (c *ComContext) ReportMax(name string, shard int, value float64) {
	c.report(name, foldMax, shard, value)
}

// report stores a shard's value. It records a misuse, which fails the stage when its function
// returns.
func (c *ComContext) report(name string, f fold, shard int, value float64) {
	if err := c.reports.add(c.TaskID(), name, f, shard, value); err != nil && c.misuse == nil {
		c.misuse = err
	}
}

// currentShard returns the current shard. Any goroutine may call it at any time.
func (c *ComContext) currentShard() int { return int(c.shard.Load()) }

// takeMisuse returns err, the error of a stage's function, or, if err is nil, the recorded
// misuse of reports.
func (c *ComContext) takeMisuse(err error) error {
	if err == nil {
		err = c.misuse
	}
	c.misuse = nil
	return err
}

// ask calls a function that returns a decision.
func (c *ComContext) ask(f func(*ComContext) (bool, error)) (bool, error) {
	c.shard.Store(-1)
	yes, err := f(c)
	return yes, c.takeMisuse(err)
}

// ForShards calls f for each shard that the subtask owns and that has rows. Errors name the
// shard.
func (c *ComContext) ForShards(f func(shard int) error) error {
	return c.ForShardsWithin(c.task.Range, f)
}

// ForShardsWithin does the same as ForShards, but only for the subtask's shards within r.
func (c *ComContext) ForShardsWithin(r sharding.Range, f func(shard int) error) error {
	for shard := max(r.Lo, c.task.Range.Lo); shard < min(r.Hi, c.task.Range.Hi); shard++ {
		if c.Empty(shard) {
			continue
		}
		if err := c.Context().Err(); err != nil {
			return context.Cause(c.Context())
		}
		c.shard.Store(int32(shard))
		if err := f(shard); err != nil {
			return err
		}
	}
	c.shard.Store(-1)
	return nil
}
