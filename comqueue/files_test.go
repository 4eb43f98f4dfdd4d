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

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/operators"
)

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

// TestRowsBeyondTheBudgetThatChange requires that, if a function or the disk changes rows in a
// file, the job fails before the queue emits rows, even without checks.
func TestRowsBeyondTheBudgetThatChange(t *testing.T) {
	for first, last := range map[int]int{0: 7, 8: 15} { // shards of one subtask
		hook := func(step, shard int, values []float64) {
			if step == 10 && shard >= first && shard <= last { // all shards, as it depends on timing which of them are in files
				values[len(values)-1]++
			}
		}
		_, _, err := run(t, averaging(1<<17, hook), engine.Parallelism(2), engine.Shards(16), engine.MemoryBudget(128<<10))
		require.ErrorContains(t, err, `rows of "data", kept beyond the memory budget: the file `)
		require.ErrorContains(t, err, "is damaged")
		require.ErrorContains(t, err, "shard ")
	}
}

// TestRowsThatChangeWhileTheQueueCloses requires that the job fails if files with rows change
// while the close function makes rows from them.
func TestRowsThatChangeWhileTheQueueCloses(t *testing.T) {
	boom := errors.New("boom")
	for _, perShard := range []bool{false, true} {
		for _, fails := range []error{nil, boom} {
			for _, damaged := range []bool{false, true} {
				var emitted atomic.Bool
				sum := func(ctx *comqueue.ComContext, shard int) ([]row, error) {
					values := data.Get(ctx, shard).Floats("value")
					if damaged && data.Get(ctx, shard).OnDisk() {
						values[0]++
					}
					s := 0.0
					for _, v := range values {
						s += v
					}
					if shard == 15 {
						return nil, fails
					}
					return []row{{s}}, nil
				}
				closing := comqueue.ShardOutput(sum)
				_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
					q := comqueue.New(b, "closing").InitWithPartitionedData(data, dataset(b, 1<<17, func(i int) float64 { return float64(i % 1013) })).Do(idle).SetMaxIter(1)
					if perShard {
						return q.CloseWith(closing).Exec()
					}
					sums := q.CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) (all []row, err error) {
						return all, ctx.ForShards(func(shard int) error {
							of, err := sum(ctx, shard)
							all = append(all, of...)
							return err
						})
					})).Exec()
					return operators.Map(sums, func(r row) row { emitted.Store(true); return r })
				}, engine.Parallelism(1), engine.Shards(16), engine.MemoryBudget(128<<10))
				switch {
				case damaged:
					require.ErrorContains(t, err, `rows of "data", kept beyond the memory budget: the file `)
					require.ErrorContains(t, err, "is damaged")
				case fails != nil:
					require.ErrorContains(t, err, "boom")
				default:
					require.NoError(t, err)
				}
				if !damaged { // damage is found at the end, when rows may already have been emitted
					require.Equal(t, !perShard && fails == nil, emitted.Load())
				}
			}
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

// TestRowsOfSubtask0AreVerified requires that the job fails if files with rows change while the
// close function on subtask 0 emits rows of these files.
func TestRowsOfSubtask0AreVerified(t *testing.T) {
	var watched watchedFiles
	first := make(chan struct{})
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		q := comqueue.New(b, "first").InitWithPartitionedData(data, dataset(b, 1<<17, func(i int) float64 { return 1 })).Do(idle).SetMaxIter(1)
		rows := emitted(b, q, true, func(ctx *comqueue.ComContext, shard int, emit func(engine.Batch) error) error {
			if err := emit(data.Get(ctx, shard).Batch()); err != nil {
				return err
			}
			return await(ctx, first)
		})
		damage := sync.OnceFunc(func() { // called when the first row arrives
			for _, f := range watched.all() {
				_, err := f.WriteAt(make([]byte, 4096), 0)
				assert.NoError(t, err)
			}
			close(first)
		})
		return operators.Filter(rows, func(row) bool {
			damage()
			return false
		})
	}, engine.Parallelism(1), engine.Shards(4), engine.BatchRows(64), engine.MemoryBudget(64<<10), engine.Disk(watched.fs(t)))
	require.ErrorContains(t, err, "is damaged")
	require.Equal(t, 1, strings.Count(err.Error(), "is damaged"))
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
				CloseOnNode0(comqueue.Output(nothing)).Exec()
		}, engine.Parallelism(1), engine.Shards(4), engine.MemoryBudget(64<<10), engine.Disk(watched.fs(t)), engine.CheckState(true))
		require.ErrorContains(t, err, "is damaged", name)
		require.ErrorContains(t, err, c.says, name)
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
			}).SetMaxIter(1).CloseOnNode0(comqueue.Output(nothing)).Exec()
		}, engine.Parallelism(2), engine.Shards(2), engine.MemoryBudget(64<<10), engine.Disk(watched.fs(t)), engine.CheckBroadcasts(true))
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), c.not, name)
	}
}

// TestFaultsWhileBlocksAreFilled requires that, if the disk cannot read a page of a block, the
// subtask fails and the process does not crash, even while the first block is filled.
func TestFaultsWhileBlocksAreFilled(t *testing.T) {
	var watched watchedFiles
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "faults").Init(func(ctx *comqueue.ComContext) error {
			_, _, err := ctx.HoldBlock("block", []int{2 << 20, 2 << 20}, func(piece int, b []byte) error {
				require.NoError(t, watched.all()[0].Truncate(0))
				b[1<<20] = 1
				return nil
			})
			return err
		}).Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	}, engine.Parallelism(1), engine.MemoryBudget(128<<10), engine.Disk(watched.fs(t)))
	require.ErrorContains(t, err, ": block: fill the 4194304 bytes of the file "+watched.all()[0].Name()+", which is mapped: the disk does not hold them (runtime error: ")
	requireUnmapped(t)
}

// hookedAllocator is an allocator that calls hook before each allocation.
type hookedAllocator struct {
	memory.Allocator
	hook func()
}

func (m hookedAllocator) Allocate(n int) []byte {
	m.hook()
	return m.Allocator.Allocate(n)
}

// TestDamageWhileRowsAreWritten requires an error if a page of a file changes before all
// columns of a shard are written.
func TestDamageWhileRowsAreWritten(t *testing.T) {
	write := func(f *os.File) error { _, err := f.WriteAt([]byte{1}, 0); return err }
	cut := func(f *os.File) error { return f.Truncate(0) }
	for want, damage := range map[string]func(*os.File) error{
		`rows of "data", kept beyond the memory budget: the disk gives other rows back than it was given: column "value", row 0`: write,
		`, shard 0: fill the `: cut,
	} {
		for _, shards := range []int{1, 16} {
			err := damaged(t, shards, damage)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, `partitioned data "data", shard 0: `)
			requireUnmapped(t)
		}
	}
}

// damaged runs a queue whose rows exceed the budget and damages their file while columns are
// written. It returns the error of the queue and requires that all memory of the slot was
// released.
func damaged(t *testing.T, shards int, damage func(*os.File) error) error {
	type named struct {
		Value float64
		Name  string // offsets of text are allocated just before its values are written
	}
	var watched watchedFiles
	mem := hookedAllocator{memory.NewGoAllocator(), func() {
		if files := watched.all(); len(files) > 0 {
			assert.NoError(t, damage(files[len(files)-1]))
		}
	}}
	var memory atomic.Pointer[task.Budget]
	rows := comqueue.PartitionedRows("data")
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		d := operators.Map(watching(b, &memory, 1<<17), func(r row) named { return named{r.Value, "name"} })
		return comqueue.New(b, "damaged").InitWithPartitionedData(rows, d).Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	}, engine.Parallelism(1), engine.Shards(shards), engine.MemoryBudget(256<<10), engine.Disk(watched.fs(t)), engine.Allocator(mem))
	requireGivenBack(t, memory.Load())
	return err
}
