//go:build linux

package comqueue_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
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
	schema := operators.FromSlice(b, []row{{1}}).Schema()
	engine.Collect(b.Add(engine.Spec{Op: "Look", Schema: schema, Source: func() engine.Source { return s }}), "looked")
	return dataset(b, n, func(i int) float64 {
		<-s.looked
		return float64(i)
	})
}

// watchedFiles keeps a handle of every file for rows, because such a file has no name any more
// when it is mapped.
type watchedFiles struct {
	mu    sync.Mutex
	files []*os.File
}

func (w *watchedFiles) fs(t *testing.T) disk.FS {
	return rowsFS{disk.OS(), func(dir, pattern string) (disk.File, error) {
		f, err := disk.OS().CreateTemp(dir, pattern)
		if err != nil {
			return nil, err
		}
		kept, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
		assert.NoError(t, err)
		t.Cleanup(func() { kept.Close() })
		w.mu.Lock()
		defer w.mu.Unlock()
		w.files = append(w.files, kept)
		return f, nil
	}}
}

// all returns the files that have been created.
func (w *watchedFiles) all() []*os.File {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*os.File(nil), w.files...)
}

// TestRowsOfFilesThatAreEmitted requires that rows of files that a queue emits unchanged are
// copied. The files are not verified after the end of the queue, and later damage to them must
// not change the emitted rows.
func TestRowsOfFilesThatAreEmitted(t *testing.T) {
	const n = 1 << 12
	again := comqueue.PartitionedRows("again")
	for name, damage := range map[string]func(f *os.File) error{
		"write": func(f *os.File) error { _, err := f.WriteAt(make([]byte, 512), 1024); return err },
		"cut":   func(f *os.File) error { return f.Truncate(0) },
	} {
		for _, once := range []bool{false, true} {
			const budget = 2 << 20
			var watched watchedFiles
			var first []*os.File
			var memory atomic.Pointer[task.Budget]
			got, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
				source := watching(b, &memory, n)
				crowd := sync.OnceFunc(func() { memory.Load().Take(budget) }) // so that the first queue keeps its rows in files
				rows := operators.Map(source, func(r row) row { crowd(); return r })
				q := comqueue.New(b, "first").InitWithPartitionedData(data, rows).Do(func(ctx *comqueue.ComContext) error {
					memory.Load().Release(budget)
					first = watched.all()
					return nil
				}).SetMaxIter(1)
				schema := operators.FromSlice(b, []row{{1}}).Schema()
				var emitted *engine.Dataset
				if once {
					emitted = q.CloseOnNode0(comqueue.OutputBatches(schema, func(ctx *comqueue.ComContext, emit func(engine.Batch) error) error {
						return ctx.ForShards(func(shard int) error { return emit(data.Get(ctx, shard).Batch()) })
					})).Exec()
				} else {
					emitted = q.CloseWith(comqueue.ShardOutputBatches(schema, func(ctx *comqueue.ComContext, shard int, emit func(engine.Batch) error) error {
						return emit(data.Get(ctx, shard).Batch())
					})).Exec()
				}
				return comqueue.New(b, "second").InitWithPartitionedData(again, emitted).Do(func(ctx *comqueue.ComContext) error {
					require.NotEmpty(t, first)
					for _, f := range first {
						require.NoError(t, damage(f))
					}
					return ctx.ForShards(func(shard int) error {
						require.False(t, again.Get(ctx, shard).OnDisk(), "the rows must be in memory, or the test does not show that they are independent of files")
						return nil
					})
				}).CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) {
					sum := 0.0
					err := ctx.ForShards(func(shard int) error {
						for _, v := range again.Get(ctx, shard).Floats("value") {
							sum += v
						}
						return nil
					})
					return []row{{sum}}, err
				})).SetMaxIter(1).Exec()
			}, engine.Parallelism(1), engine.Shards(4), engine.BatchRows(n), engine.MemoryBudget(budget), engine.Disk(watched.fs(t)))
			require.NoError(t, err, name)
			require.Equal(t, []row{{n * (n - 1) / 2}}, got, name)
		}
	}
}

// TestDamageComesBeforeRows requires that operators after a queue get no rows if the queue's
// files have changed by the end of the last superstep.
func TestDamageComesBeforeRows(t *testing.T) {
	for _, perShard := range []bool{false, true} {
		for _, damaged := range []bool{false, true} {
			var closed, seen atomic.Int64
			_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
				rows := dataset(b, 1<<15, func(i int) float64 { return float64(i) })
				q := comqueue.New(b, "damaged").InitWithPartitionedData(data, rows).Do(func(ctx *comqueue.ComContext) error {
					return ctx.ForShards(func(shard int) error {
						if f := data.Get(ctx, shard); damaged && f.OnDisk() {
							f.Floats("value")[0]++
						}
						return nil
					})
				}).SetMaxIter(1)
				many := make([]row, 50_000) // more rows than an exchange buffers
				if perShard {
					q.CloseWith(comqueue.ShardOutput(func(*comqueue.ComContext, int) ([]row, error) { closed.Add(1); return many[:1], nil }))
				} else {
					q.CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) { return many, nil }))
				}
				return operators.Filter(q.Exec(), func(r row) bool { seen.Add(1); return false })
			}, engine.Parallelism(1), engine.Shards(4), engine.BatchRows(10), engine.MemoryBudget(128<<10))
			if !damaged {
				require.NoError(t, err)
				require.NotZero(t, seen.Load())
				continue
			}
			require.ErrorContains(t, err, "is damaged")
			require.Zero(t, closed.Load())
			require.Zero(t, seen.Load())
		}
	}
}

// TestDamageOfOthersIsTheCause requires that, if damage to the files of one subtask makes a
// function of another subtask fail, the damage is reported as the cause. The files of all
// inputs must be verified.
func TestDamageOfOthersIsTheCause(t *testing.T) {
	const n, shards = 1 << 16, 8
	second := comqueue.PartitionedRows("second")
	for _, key := range []comqueue.PartitionedData{data, second} {
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			rows := func() *engine.Dataset { return dataset(b, n, func(i int) float64 { return 1 }) }
			return comqueue.New(b, "damaged").InitWithPartitionedData(data, rows()).InitWithPartitionedData(second, rows()).
				Init(func(ctx *comqueue.ComContext) error {
					gradient.Put(ctx, make([]float64, 1))
					return nil
				}).
				Add(comqueue.ForEachShard(gradient, func(ctx *comqueue.ComContext, shard int, out []float64) error {
					values := key.Get(ctx, shard).Floats("value")
					if shard >= shards/2 && ctx.StepNo() == 2 {
						values[0] = math.NaN()
					}
					for _, v := range values {
						out[0] += v
					}
					return nil
				})).
				Add(comqueue.AllReduce(gradient)).
				SetCompareCriterionOfNode0(func(ctx *comqueue.ComContext) (bool, error) {
					if math.IsNaN(gradient.Get(ctx)[0]) {
						return false, errors.New("the loss is not a number")
					}
					return false, nil
				}).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(4).Exec()
		}, engine.Parallelism(2), engine.Shards(shards), engine.MemoryBudget(128<<10))
		require.ErrorContains(t, err, fmt.Sprintf("rows of %q, kept beyond the memory budget: the file ", key.Name()))
		require.ErrorContains(t, err, "is damaged")
	}
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

func requireGivenBack(t *testing.T, memory *task.Budget) {
	t.Helper()
	require.Zero(t, memory.Used())
	require.Zero(t, memory.Kept(true))
	require.Zero(t, memory.Kept(false))
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

// TestRowsOfSubtask0AreVerified requires that the job fails if files with rows change while the
// close function on subtask 0 emits rows of these files.
func TestRowsOfSubtask0AreVerified(t *testing.T) {
	var watched watchedFiles
	first := make(chan struct{})
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		q := comqueue.New(b, "first").InitWithPartitionedData(data, dataset(b, 1<<17, func(i int) float64 { return 1 })).Do(idle).SetMaxIter(1)
		schema := operators.FromSlice(b, []row{{1}}).Schema()
		emitted := q.CloseOnNode0(comqueue.OutputBatches(schema, func(ctx *comqueue.ComContext, emit func(engine.Batch) error) error {
			for shard := range ctx.TotalShards() {
				if err := emit(data.Get(ctx, shard).Batch()); err != nil {
					return err
				}
				select {
				case <-first:
				case <-ctx.Context().Done():
				}
			}
			return nil
		})).Exec()
		damage := sync.OnceFunc(func() { // called when the first row arrives
			for _, f := range watched.all() {
				_, err := f.WriteAt(make([]byte, 4096), 0)
				assert.NoError(t, err)
			}
			close(first)
		})
		return operators.Filter(emitted, func(row) bool {
			damage()
			return false
		})
	}, engine.Parallelism(1), engine.Shards(4), engine.BatchRows(64), engine.MemoryBudget(64<<10), engine.Disk(watched.fs(t)))
	require.ErrorContains(t, err, "is damaged")
	require.Equal(t, 1, strings.Count(err.Error(), "is damaged"))
}

// TestFirstFailureOfACloseStays requires that the failure of a later shard, which comes after
// the run has ended, does not replace the first failure. Functions of further shards must not
// be called.
func TestFirstFailureOfACloseStays(t *testing.T) {
	for _, budget := range []int64{0, 64 << 10} {
		var late atomic.Int32
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			q := comqueue.New(b, "first").InitWithPartitionedData(data, dataset(b, 1<<17, func(i int) float64 { return 1 })).Do(idle).SetMaxIter(1)
			return q.CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]row, error) {
				switch shard {
				case 0:
					return nil, errors.New("the first failure")
				case 2:
					<-ctx.Context().Done()
					return nil, nil
				}
				late.Add(1)
				return nil, fmt.Errorf("a later failure in shard %d", shard)
			})).Exec()
		}, engine.Parallelism(2), engine.Shards(4), engine.MemoryBudget(budget))
		require.ErrorContains(t, err, "shard 0: the first failure")
		require.Zero(t, late.Load())
	}
}

// TestPanicAfterLostRows requires that the first error of emit is reported if the close function
// ignores it and then panics.
func TestPanicAfterLostRows(t *testing.T) {
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		q := comqueue.New(b, "first").InitWithPartitionedData(data, dataset(b, 16, func(i int) float64 { return 1 })).Do(idle).SetMaxIter(1)
		schema := operators.FromSlice(b, []row{{1}}).Schema()
		return q.CloseOnNode0(comqueue.OutputBatches(schema, func(_ *comqueue.ComContext, emit func(engine.Batch) error) error {
			_ = emit(engine.Batch{})
			panic("later")
		})).Exec()
	}, engine.Parallelism(1), engine.Shards(4))
	require.ErrorContains(t, err, "the queue gives a zero Batch")
	require.NotContains(t, err.Error(), "later")
}

// TestLostRowsFailTheJob requires that the job fails with the first error of emit, whatever the
// close function returns, and however much of the rows is in files.
func TestLostRowsFailTheJob(t *testing.T) {
	boom := errors.New("boom")
	for _, budget := range []int64{0, 64 << 10} {
		for _, perShard := range []bool{false, true} {
			for _, returned := range []error{nil, boom} {
				_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
					q := comqueue.New(b, "first").InitWithPartitionedData(data, dataset(b, 1<<17, func(i int) float64 { return 1 })).Do(idle).SetMaxIter(1)
					schema := operators.FromSlice(b, []row{{1}}).Schema()
					give := func(ctx *comqueue.ComContext, shard int, emit func(engine.Batch) error) error {
						first := emit(engine.Batch{})
						assert.ErrorContains(t, first, "the queue gives a zero Batch")
						assert.Equal(t, first, emit(data.Get(ctx, shard).Batch()))
						return returned
					}
					if perShard {
						return q.CloseWith(comqueue.ShardOutputBatches(schema, give)).Exec()
					}
					return q.CloseOnNode0(comqueue.OutputBatches(schema, func(ctx *comqueue.ComContext, emit func(engine.Batch) error) error {
						return give(ctx, 0, emit)
					})).Exec()
				}, engine.Parallelism(1), engine.Shards(4), engine.BatchRows(64), engine.MemoryBudget(budget))
				require.ErrorContains(t, err, "the queue gives a zero Batch")
				if returned != nil {
					require.ErrorContains(t, err, "; the function failed with: boom")
				}
			}
		}
	}
}

// TestFailuresOfDamagedRows requires that damage is reported as the cause if a function fails
// because of it: a stage, a function of WithState, or a function of Init that is called again.
// In the cases whose field "says" is not empty, the failure of the function must also be part
// of the error.
func TestFailuresOfDamagedRows(t *testing.T) {
	check := func(f *comqueue.Frame) error {
		for _, v := range f.Floats("value") {
			if v != 1 {
				return errors.New("the rows are not numbers")
			}
		}
		return nil
	}
	damage := func(watched *watchedFiles) {
		for _, f := range watched.all() {
			_, err := f.WriteAt([]byte{1, 2, 3, 4, 5, 6, 7}, 80)
			assert.NoError(t, err)
		}
	}
	for name, c := range map[string]struct {
		queue func(b *engine.Builder, rows *engine.Dataset, watched *watchedFiles) *comqueue.IterativeComQueue
		says  string
	}{
		"stage": {func(b *engine.Builder, rows *engine.Dataset, watched *watchedFiles) *comqueue.IterativeComQueue {
			return comqueue.New(b, "queue").InitWithPartitionedData(data, rows).Do(func(ctx *comqueue.ComContext) error {
				damage(watched)
				return ctx.ForShards(func(shard int) error { return check(data.Get(ctx, shard)) })
			})
		}, "; the function failed with: the rows are not numbers"},
		"state": {func(b *engine.Builder, rows *engine.Dataset, watched *watchedFiles) *comqueue.IterativeComQueue {
			stated := data.WithState(func(_ *comqueue.ComContext, f *comqueue.Frame) int64 {
				if f.OnDisk() {
					damage(watched)
				}
				if check(f) != nil {
					return -1
				}
				return 0
			})
			return comqueue.New(b, "queue").InitWithPartitionedData(stated, rows).Do(idle)
		}, ""},
		"state panics": {func(b *engine.Builder, rows *engine.Dataset, watched *watchedFiles) *comqueue.IterativeComQueue {
			stated := data.WithState(func(_ *comqueue.ComContext, f *comqueue.Frame) int64 {
				if f.OnDisk() {
					damage(watched)
				}
				if err := check(f); err != nil {
					panic(err)
				}
				return 0
			})
			return comqueue.New(b, "queue").InitWithPartitionedData(stated, rows).Do(idle)
		}, ""},
		"init again": {func(b *engine.Builder, rows *engine.Dataset, watched *watchedFiles) *comqueue.IterativeComQueue {
			return comqueue.New(b, "queue").InitWithPartitionedData(data, rows).Init(func(ctx *comqueue.ComContext) error {
				return ctx.ForShards(func(shard int) error { return check(data.Get(ctx, shard)) })
			}).Do(func(ctx *comqueue.ComContext) error {
				if ctx.StepNo() == 1 {
					damage(watched)
				}
				return nil
			})
		}, "; the function failed with: "},
	} {
		var watched watchedFiles
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			return c.queue(b, dataset(b, 1<<17, func(int) float64 { return 1 }), &watched).SetMaxIter(2).
				CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]row, error) { return nil, nil })).Exec()
		}, engine.Parallelism(1), engine.Shards(4), engine.MemoryBudget(64<<10), engine.Disk(watched.fs(t)), engine.CheckState(true))
		require.ErrorContains(t, err, "is damaged", name)
		require.ErrorContains(t, err, c.says, name)
	}
}

// TestViewsThatAreEmitted requires correct rows if a close function emits batches that refer to
// the queue's rows and blocks in memory, although the queue returns that memory to the system
// when it ends.
func TestViewsThatAreEmitted(t *testing.T) {
	const n = 1 << 18 // 2 MiB of numbers, which are not on the Go heap
	ended := func(b *engine.Builder, emitted *engine.Dataset) *engine.Dataset {
		read := operators.Map(emitted, func(r row) row { return r })
		return comqueue.New(b, "second").InitWithPartitionedData(comqueue.PartitionedRows("again"), read).Do(idle).SetMaxIter(1).
			CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]row, error) {
				sum := 0.0
				for _, v := range comqueue.PartitionedRows("again").Get(ctx, shard).Floats("value") {
					sum += v
				}
				return []row{{sum}}, nil
			})).Exec()
	}
	blocks := shared.Scratch[[]float64]("block")
	views := map[string]func(ctx *comqueue.ComContext, shard int) []float64{
		"rows":  func(ctx *comqueue.ComContext, shard int) []float64 { return data.Get(ctx, shard).Floats("value") },
		"block": func(ctx *comqueue.ComContext, _ int) []float64 { return blocks.Get(ctx) },
	}
	block := func(ctx *comqueue.ComContext) error {
		held, _, err := ctx.HoldBlock("numbers", []int{8 * n}, func(_ int, b []byte) error {
			return ctx.ForShards(func(shard int) error {
				copy(b, arrow.Float64Traits.CastToBytes(data.Get(ctx, shard).Floats("value")))
				return nil
			})
		})
		blocks.Put(ctx, arrow.Float64Traits.CastFromBytes(held))
		return err
	}
	for name, view := range views {
		for _, once := range []bool{false, true} {
			got, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
				rows := dataset(b, n, func(i int) float64 { return float64(i) })
				schema := operators.FromSlice(b, []row{{1}}).Schema()
				give := func(ctx *comqueue.ComContext, shard int, emit func(engine.Batch) error) error {
					made, err := columnar.NewBatch(nil, schema, view(ctx, shard))
					if err != nil {
						return err
					}
					defer made.Release()
					return emit(made)
				}
				q := comqueue.New(b, "first").InitWithPartitionedData(data, rows).Init(block).Do(idle).SetMaxIter(1)
				if once {
					return ended(b, q.CloseOnNode0(comqueue.OutputBatches(schema, func(ctx *comqueue.ComContext, emit func(engine.Batch) error) error {
						return give(ctx, 0, emit)
					})).Exec())
				}
				return ended(b, q.CloseWith(comqueue.ShardOutputBatches(schema, give)).Exec())
			}, engine.Parallelism(1), engine.Shards(1))
			require.NoError(t, err, name)
			require.Equal(t, []row{{n * (n - 1) / 2}}, got, "%s, once: %v", name, once)
		}
	}
}

// TestFilesThatCannotBeCheckedAreNoChange requires that the error of a check tells apart rows
// of another subtask that cannot be read and rows that a function has modified.
func TestFilesThatCannotBeCheckedAreNoChange(t *testing.T) {
	const n = 1 << 14
	for name, c := range map[string]struct {
		do        func(f *comqueue.Frame, files []*os.File) error
		says, not string
	}{
		"cut": {func(_ *comqueue.Frame, files []*os.File) error {
			for _, f := range files {
				if err := f.Truncate(0); err != nil {
					return err
				}
			}
			return nil
		}, "some cannot be read", "modified"},
		"modified": {func(f *comqueue.Frame, _ []*os.File) error {
			f.Floats("value")[0] = -1
			return nil
		}, `rows of "data" were modified in superstep 1, or the disk that they are on has lost some`, "damaged"},
	} {
		var watched watchedFiles
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			rows := operators.Filter(dataset(b, n, func(i int) float64 { return float64(i) }), func(r row) bool { return r.Value >= n/2 })
			return comqueue.New(b, "queue").InitWithPartitionedData(data, rows).Do(func(ctx *comqueue.ComContext) error {
				if ctx.TaskID() == 0 {
					require.Equal(t, 0, data.Get(ctx, 0).Rows(), "subtask 0 must have no files, so that its goroutine is not prepared for faults")
					return nil
				}
				return ctx.ForShards(func(shard int) error {
					require.True(t, data.Get(ctx, shard).OnDisk())
					return c.do(data.Get(ctx, shard), watched.all())
				})
			}).SetMaxIter(1).CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]row, error) { return nil, nil })).Exec()
		}, engine.Parallelism(2), engine.Shards(2), engine.MemoryBudget(64<<10), engine.Disk(watched.fs(t)), engine.CheckBroadcasts(true))
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), c.not, name)
	}
}

// TestDamageIsTheCauseInLoops requires that damage is reported as the cause if the condition of
// a loop within a superstep fails, as for other functions.
func TestDamageIsTheCauseInLoops(t *testing.T) {
	wrong := func(ctx *comqueue.ComContext) (bool, error) {
		for shard := range 8 {
			if f := data.Get(ctx, shard); f.OnDisk() {
				f.Floats("value")[0] = math.NaN()
				return false, errors.New("the loss is not a number")
			}
		}
		return false, nil
	}
	for name, loop := range map[string]comqueue.Stage{
		"until": comqueue.Repeat(3, wrong, comqueue.Do(idle)),
		"while": comqueue.While(3, wrong, comqueue.Do(idle)),
	} {
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "loops").InitWithPartitionedData(data, dataset(b, 1<<16, func(i int) float64 { return 1 })).Add(loop).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}, engine.Parallelism(1), engine.Shards(8), engine.MemoryBudget(64<<10))
		require.ErrorContains(t, err, "is damaged", name)
	}
}
