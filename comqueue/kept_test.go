//go:build linux

package comqueue_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/operators"
)

// slot is a source without rows that opens before other sources emit rows. It gives the test
// the memory budget of its slot.
type slot struct {
	memory *atomic.Pointer[task.Budget]
	looked chan struct{}
}

func (s slot) ReadShard(*engine.Context, int, engine.Output) error { return nil }
func (s slot) Close() error                                        { return nil }

func (s slot) Open(c *engine.Context) error {
	s.memory.Store(c.Memory)
	close(s.looked)
	return nil
}

// watching adds a source that gives the test the memory budget of the only slot. It returns a
// dataset of n rows, whose source begins after that.
func watching(b *engine.Builder, memory *atomic.Pointer[task.Budget], n int) *engine.Dataset {
	s := slot{memory, make(chan struct{})}
	engine.Collect(b.Add(engine.Spec{Op: "Look", Schema: rowSchema(b), Source: func() engine.Source { return s }}), "looked")
	return dataset(b, n, func(i int) float64 {
		<-s.looked
		return float64(i)
	})
}

func requireGivenBack(t *testing.T, memory *task.Budget) {
	t.Helper()
	require.Zero(t, memory.Used())
	require.Zero(t, memory.Kept(true))
	require.Zero(t, memory.Kept(false))
}

// TestInvalidState requires that an impossible result of the function of WithState is
// reported, and that all memory is then released.
func TestInvalidState(t *testing.T) {
	for _, state := range []int64{-1, -1 << 40, math.MinInt64, 1 << 51, 1 << 62, math.MaxInt64, math.MaxInt64 - 1} {
		var memory atomic.Pointer[task.Budget]
		key := comqueue.PartitionedRows("rows").WithState(func(*comqueue.ComContext, *comqueue.Frame) int64 { return state })
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "state").InitWithPartitionedData(key, watching(b, &memory, 100)).Do(idle).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}, engine.Parallelism(1), engine.Shards(1), engine.MemoryBudget(256<<10))
		require.ErrorContains(t, err, fmt.Sprintf("the function of WithState says %d bytes", state))
		require.ErrorContains(t, err, `queue "state": `)
		requireGivenBack(t, memory.Load())
	}
}

// TestStateThatPanics requires that the memory of rows is released if the user's function of
// WithState panics for them.
func TestStateThatPanics(t *testing.T) {
	for _, budget := range []int64{128 << 10, 64 << 20} {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		var memory atomic.Pointer[task.Budget]
		key := comqueue.PartitionedRows("rows").WithState(func(*comqueue.ComContext, *comqueue.Frame) int64 {
			panic("boom")
		})
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "state").InitWithPartitionedData(key, watching(b, &memory, 1<<17)).Do(idle).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}, engine.Parallelism(1), engine.Shards(1), engine.MemoryBudget(budget), engine.Allocator(mem))
		require.ErrorContains(t, err, "boom")
		mem.AssertSize(t, 0)
		requireGivenBack(t, memory.Load())
		requireUnmapped(t)
	}
}

// TestWhatQueuesKeepIsCounted requires that state, blocks and rows count as kept while a queue
// runs, and are released at its end. Rows in memory that could move to files must be counted
// separately.
func TestWhatQueuesKeepIsCounted(t *testing.T) {
	const n, state, block = 10_000, 30_000, 20_000 // 80 kB of rows
	for _, test := range []struct {
		budget int64
		fs     disk.FS
		kept   int64 // bytes kept, without rows
		rows   bool  // whether rows are in memory
	}{
		{1 << 20, disk.OS(), state + block, true},
		{1 << 20, unmapped, state + block, true},
		{64 << 10, disk.OS(), state + block, false},
		{170_000, unmapped, 2*state + block, true}, // other operators hold the memory that "more" needs
	} {
		var memory atomic.Pointer[task.Budget]
		key := comqueue.PartitionedRows("rows").WithState(func(*comqueue.ComContext, *comqueue.Frame) int64 { return state })
		more := comqueue.PartitionedRows("more").WithState(func(*comqueue.ComContext, *comqueue.Frame) int64 {
			memory.Load().Take(test.budget)
			return state
		})
		two := test.kept > state+block
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			q := comqueue.New(b, "kept").InitWithPartitionedData(key, watching(b, &memory, n))
			if two {
				q.InitWithPartitionedData(more, dataset(b, 1, func(int) float64 { return 1 }))
			}
			return q.Init(func(ctx *comqueue.ComContext) error {
				if two {
					memory.Load().Release(test.budget)
				}
				_, onDisk, err := ctx.HoldBlock("a block", []int{block}, func(int, []byte) error { return nil })
				if test.budget < 100_000 && err == nil && onDisk {
					return nil
				}
				return err
			}).Do(func(ctx *comqueue.ComContext) error {
				m := memory.Load()
				kept := test.kept
				if test.budget < 100_000 {
					kept = m.Kept(false)
					require.GreaterOrEqual(t, kept, int64(state))
				}
				require.Equal(t, kept, m.Kept(false))
				if test.rows {
					require.GreaterOrEqual(t, m.Kept(true), kept+8*n)
				} else {
					require.Equal(t, kept, m.Kept(true))
				}
				require.GreaterOrEqual(t, m.Used(), m.Kept(true))
				return nil
			}).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}, engine.Parallelism(1), engine.Shards(1), engine.MemoryBudget(test.budget), engine.Disk(test.fs))
		require.NoError(t, err, "budget %d", test.budget)
		requireGivenBack(t, memory.Load())
	}
}

// TestOffsetsThatDoNotFit requires that rows that were moved to a file are released if their
// offsets, which stay in memory, do not fit.
func TestOffsetsThatDoNotFit(t *testing.T) {
	const n = 1 << 15
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	var memory atomic.Pointer[task.Budget]
	key := comqueue.PartitionedRows("rows")
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		rows := operators.Map(watching(b, &memory, n), func(r row) named { return named{int64(r.Value), name(int64(r.Value))} })
		return comqueue.New(b, "offsets").InitWithPartitionedData(key, rows).Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	}, engine.Parallelism(1), engine.Shards(1), engine.MemoryBudget(100<<10), engine.Allocator(mem))
	var full *task.BudgetError
	require.ErrorAs(t, err, &full)
	mem.AssertSize(t, 0)
	requireGivenBack(t, memory.Load())
	requireUnmapped(t)
}

// TestOffsetsOfRowsInFilesCount requires that the offsets of rows in files, which stay in
// memory, count in the budget.
func TestOffsetsOfRowsInFilesCount(t *testing.T) {
	const n, shards = 1 << 15, 16
	var memory atomic.Pointer[task.Budget]
	held := int64(0)
	key := comqueue.PartitionedRows("rows")
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		rows := operators.Map(watching(b, &memory, n), func(r row) named { return named{int64(r.Value), name(int64(r.Value))} })
		return comqueue.New(b, "offsets").InitWithPartitionedData(key, rows).Do(func(ctx *comqueue.ComContext) error {
			held = memory.Load().Used()
			onDisk := 0
			for shard := range shards {
				if key.Get(ctx, shard).OnDisk() {
					onDisk++
				}
			}
			require.Greater(t, onDisk, shards/2)
			return nil
		}).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	}, engine.Parallelism(1), engine.Shards(shards), engine.MemoryBudget(256<<10))
	require.NoError(t, err)
	require.Greater(t, held, int64(4*n))
}

// await waits until c is closed or the run ends.
func await(ctx *comqueue.ComContext, c chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Context().Done():
		return ctx.Context().Err()
	}
}

// TestStateOfQueuesAtOnce requires that rows in memory that could be in files do not make the
// state of another queue fail, whichever of the two queues comes first.
func TestStateOfQueuesAtOnce(t *testing.T) {
	const n = 120_000 // 960 kB of rows
	for _, first := range []bool{true, false} {
		read, stated := make(chan struct{}), make(chan struct{})
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			wait := func(c chan struct{}, when bool) func(i int) float64 {
				return func(i int) float64 {
					if when {
						<-c
					}
					return float64(i)
				}
			}
			rows := comqueue.New(b, "rows").InitWithPartitionedData(data, dataset(b, n, wait(stated, !first))).Init(func(ctx *comqueue.ComContext) error {
				close(read)
				return await(ctx, stated)
			}).Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
			var states sync.WaitGroup
			states.Add(3)
			go func() { states.Wait(); close(stated) }()
			for i := range 3 {
				name := fmt.Sprint("state ", i)
				key := comqueue.PartitionedRows(name).WithState(func(_ *comqueue.ComContext, rows *comqueue.Frame) int64 {
					return int64(rows.Rows()) * 600 << 10
				})
				engine.Collect(comqueue.New(b, name).InitWithPartitionedData(key, dataset(b, 1, wait(read, first))).Init(func(ctx *comqueue.ComContext) error {
					states.Done()
					if !first {
						return await(ctx, read)
					}
					return nil
				}).Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec(), name)
			}
			return rows
		}, engine.Parallelism(1), engine.Shards(16), engine.MemoryBudget(1<<20))
		require.NoError(t, err, "the queue with rows comes first: %v", first)
	}
}

// TestRefusalDoesNotWaitForQueues requires that a refusal does not wait for inputs that other
// queues make, as that may take long. So the advised memory does not include such inputs, but
// it includes other inputs that have not been read yet.
func TestRefusalDoesNotWaitForQueues(t *testing.T) {
	second := comqueue.PartitionedRows("second")
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		long := comqueue.New(b, "long").InitWithPartitionedData(data, dataset(b, 1, func(int) float64 { return 1 })).Do(func(ctx *comqueue.ComContext) error {
			<-ctx.Context().Done() // the queue ends only if the other queue is refused
			return nil
		}).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		return comqueue.New(b, "refused").InitWithPartitionedData(data, dataset(b, 50_000, func(i int) float64 { return float64(i) })).
			InitWithPartitionedData(second, operators.Map(long, func(r row) row { return r })).
			Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	}, engine.Parallelism(1), engine.Shards(4), engine.MemoryBudget(64<<10), engine.Disk(unmapped))
	var full *task.BudgetError
	require.ErrorAs(t, err, &full)
	require.True(t, strings.Contains(err.Error(), `queue "refused": partitioned data "data"`), err)
}

// TestQueuesThatDoNotFitTogether requires that, if rows cannot move to disk, queues that run at
// the same time are refused if their rows together exceed twice the budget.
func TestQueuesThatDoNotFitTogether(t *testing.T) {
	const n, queues = 100_000, 3 // 800 kB of rows each
	budget, refused := int64(1<<20), 0
	for ; refused < 6; refused++ {
		ctx, cancel := context.WithCancel(t.Context())
		var open sync.WaitGroup
		open.Add(queues)
		job := engine.Anonymous(func(b *engine.Builder) error {
			for i := range queues {
				name := fmt.Sprint("queue ", i)
				engine.Collect(comqueue.New(b, name).InitWithPartitionedData(data, dataset(b, n, func(i int) float64 { return float64(i) })).
					Init(func(queue *comqueue.ComContext) error { // all queues hold their rows at the same time
						open.Done()
						all := make(chan struct{})
						go func() { open.Wait(); close(all) }()
						select {
						case <-all:
						case <-queue.Context().Done():
						}
						return nil
					}).Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec(), name)
			}
			return nil
		})
		result, err := engine.Run(ctx, job, struct{}{}, engine.Parallelism(1), engine.Shards(8), engine.MemoryBudget(budget), engine.Disk(unmapped))
		cancel()
		if err == nil {
			require.LessOrEqual(t, result.Report.PeakMemory, 2*budget+budget/4)
			result.Release()
			break
		}
		var full *task.BudgetError
		require.ErrorAs(t, err, &full)
		require.Greater(t, full.Enough, budget)
		budget = full.Enough
	}
	require.NotZero(t, refused)
	require.Less(t, refused, 6, "the advised memory must rise with each refusal, as it includes what other queues hold")
}

// TestInputsThatDoNotFitTogether requires that the advised memory includes the rows of inputs
// that have not been read yet.
func TestInputsThatDoNotFitTogether(t *testing.T) {
	const n = 20_000 // 160 kB of rows each
	budget, refused := int64(64<<10), 0
	for ; refused < 4; refused++ {
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			q := comqueue.New(b, "inputs")
			for i := range 3 {
				q.InitWithPartitionedData(comqueue.PartitionedRows(fmt.Sprint("input ", i)), dataset(b, n, func(i int) float64 { return float64(i) }))
			}
			return q.Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}, engine.Parallelism(1), engine.Shards(8), engine.MemoryBudget(budget), engine.Disk(unmapped))
		if err == nil {
			break
		}
		var full *task.BudgetError
		require.ErrorAs(t, err, &full)
		budget = full.Enough
	}
	require.Equal(t, 1, refused)
}
