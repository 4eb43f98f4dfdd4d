package comqueue_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// watchedSource is a source that notes which shards it makes.
type watchedSource struct {
	numbers
	made func(shard int)
}

func (s watchedSource) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	s.made(shard)
	c.Count("shards", 1)
	c.Accumulate("made", shard, float64(shard)+0.1)
	return s.numbers.ReadShard(c, shard, out)
}

// reading adds a source, a shuffle if shuffled, and the queue of losing.
func reading(n int, shuffled bool, l *loss, made func(shard int)) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset {
		rows := b.Add(engine.Spec{Op: "Watched", Schema: arrowrows.Schema(schema), Source: func() engine.Source { return watchedSource{numbers{n, spread}, made} }})
		if shuffled {
			rows = shuffle(b, rows)
		}
		return walking("queue", rows, 0).Do(func(ctx *comqueue.ComContext) error {
			if ctx.TaskID() == 0 && ctx.StepNo() == l.step {
				return errLost
			}
			return nil
		}).Exec()
	}
}

// shuffle adds an operator that gets each row by a hash of its value and passes it on.
func shuffle(b *engine.Builder, rows *engine.Dataset) *engine.Dataset {
	return b.Add(engine.Spec{
		Op: "Shuffled", Schema: arrowrows.Schema(schema), Inputs: []engine.Port{{From: rows, Partitioner: engine.Hash, Keys: []string{"value"}}},
		Operator: func() engine.Operator { return passing{} },
	})
}

type passing struct{ engine.BaseOperator }

func (passing) Process(_ *engine.Context, _, shard int, rows engine.Batch, out engine.Output) error {
	return out.Emit(shard, rows)
}

// TestRowsThatAreLeft requires that a run whose processes have kept rows of a run that failed makes
// only the shards whose rows no process has, whoever owns them now, and has the bits, series, counts and accumulators of an
// undisturbed run: with checkpoints and from superstep 1, with workers that were replaced, at other
// parallelisms, and again and again.
func TestRowsThatAreLeft(t *testing.T) {
	const shards = 16
	for _, shuffled := range []bool{false, true} {
		for _, saved := range []bool{false, true} {
			for i, how := range []struct {
				p, workers int
				lost       []int // workers whose processes are lost before the next run
				then       int   // parallelism of the next run
			}{{4, 2, []int{1}, 4}, {4, 4, []int{0}, 4}, {5, 3, []int{2}, 2}, {2, 2, nil, 5}, {3, 3, []int{0, 1, 2}, 3}} {
				if !testsize.Soak && saved && i%2 == 0 {
					continue
				}
				t.Run(fmt.Sprint(how, " shuffled ", shuffled, " saved ", saved), func(t *testing.T) {
					testRowsThatAreLeft(t, shards, shuffled, saved, how.p, how.workers, how.lost, how.then)
				})
			}
		}
	}
}

func testRowsThatAreLeft(t *testing.T, shards int, shuffled, saved bool, p, workers int, lost []int, then int) {
	var loses loss
	var mu sync.Mutex
	var made []int
	build := reading(300, shuffled, &loses, func(shard int) {
		mu.Lock()
		defer mu.Unlock()
		made = append(made, shard)
	})
	want, whole, err := runOnce(t, build, engine.Shards(shards), engine.Parallelism(1))
	require.NoError(t, err)

	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) }) // after the results are released
	kept := make([]*task.Retained, max(workers, then))
	for i := range kept {
		kept[i] = task.NewRetained()
		defer func() { require.NoError(t, kept[i].Close()) }()
	}
	dir := filepath.Join(t.TempDir(), "checkpoints")
	run := func(p int) ([]row, *engine.Result, error) {
		made = nil
		options := []engine.Option{engine.Shards(shards), engine.Parallelism(p), engine.Workers(min(workers, p)), engine.Retaining(kept), engine.Allocator(mem)}
		if saved {
			options = append(options, engine.CheckpointDir(dir), engine.CheckpointSupersteps(1), engine.Resume(true))
		}
		return runOnce(t, build, options...)
	}
	loses.step = 2
	_, _, err = run(p)
	require.ErrorIs(t, err, errLost)
	require.Len(t, made, shards)

	loses.step = 4 // the rows are left once more
	var missing []int
	for _, w := range lost {
		require.NoError(t, kept[w].Close())
		kept[w] = task.NewRetained()
		for shard, owner := range owned(shards, p, workers) {
			if owner == w {
				missing = append(missing, shard)
			}
		}
	}
	_, _, err = run(then)
	require.ErrorIs(t, err, errLost)
	requireMade(t, shards, shuffled, then, missing, made)

	loses.step = -1
	got, result, err := run(then)
	require.NoError(t, err)
	require.Empty(t, made, "all rows are there")
	require.Equal(t, bitsOf(want), bitsOf(got))
	requireSameSeries(t, whole.Report.Queues, result.Report.Queues)
	require.Equal(t, whole.Report.Accumulators, result.Report.Accumulators)
	require.Equal(t, countsOf(whole), countsOf(result))
}

// countsOf returns what the source has counted, over all of its subtasks.
func countsOf(r *engine.Result) string {
	var shards, rows int64
	for _, v := range r.Report.Vertices {
		for _, s := range v.Subtasks {
			for _, o := range s.Operators {
				for _, c := range o.Counters {
					shards, rows = shards+c.Value, rows+o.RowsOut
				}
			}
		}
	}
	return fmt.Sprint(shards, rows > 0)
}

// owned returns the worker that has the subtask of each shard.
func owned(shards, p, workers int) []int {
	owners := make([]int, shards)
	for w := range workers {
		slots := sharding.Split(p, workers, w)
		for t := slots.Lo; t < slots.Hi; t++ {
			own := sharding.Split(shards, p, t)
			for shard := own.Lo; shard < own.Hi; shard++ {
				owners[shard] = w
			}
		}
	}
	return owners
}

// requireMade requires that a source made the shards that were missing and no more than the last
// shard of each subtask besides, or all shards if rows were shuffled.
func requireMade(t *testing.T, shards int, shuffled bool, p int, missing, made []int) {
	t.Helper()
	slices.Sort(made)
	if shuffled && len(missing) > 0 {
		require.Len(t, made, shards)
		return
	}
	for _, shard := range missing {
		require.Contains(t, made, shard)
	}
	require.LessOrEqual(t, len(made), len(missing)+p)
}

// TestQueuesThatAreLeftOut requires that a queue which had ended is not run again, and that its inputs
// are not read again, if a process has kept what it gave to another queue: also if the process that had
// made it is lost, and a copy of its report is left.
func TestQueuesThatAreLeftOut(t *testing.T) {
	const shards = 16
	for _, lost := range [][]int{{0}, {1}, {2}, {0, 1}, {0, 2}, {0, 1, 2}} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			var loses loss
			var mu sync.Mutex
			var made []int
			began := 0
			dir := filepath.Join(t.TempDir(), "checkpoints")
			build := func(b *engine.Builder) *engine.Dataset {
				rows := b.Add(engine.Spec{Op: "Watched", Schema: arrowrows.Schema(schema), Source: func() engine.Source {
					return watchedSource{numbers{300, spread}, func(shard int) {
						mu.Lock()
						defer mu.Unlock()
						made = append(made, shard)
					}}
				}})
				first := walking("first", rows, 0).Begin(func(ctx *comqueue.ComContext) error {
					mu.Lock()
					defer mu.Unlock()
					began++
					return nil
				}).Exec()
				side := comqueue.BroadcastRows("of the first")
				return walking("second", rows, 0).InitWithBroadcastData(side, first).Do(func(ctx *comqueue.ComContext) error {
					values := side.Get(ctx).Floats("value")
					walked.Get(ctx)[0] += values[ctx.StepNo()] + values[len(values)-1]
					if ctx.TaskID() == 0 && ctx.StepNo() == loses.step {
						// Checkpoints are written behind the supersteps.
						require.Eventually(t, func() bool { return savedStep(t, dir, "first") == 6 }, time.Minute, time.Millisecond)
						return errLost
					}
					return nil
				}).Exec()
			}
			want, whole, err := runOnce(t, build, engine.Shards(shards), engine.Parallelism(1))
			require.NoError(t, err)
			kept := make([]*task.Retained, 3)
			for i := range kept {
				kept[i] = task.NewRetained()
				defer func() { require.NoError(t, kept[i].Close()) }()
			}
			run := func() ([]row, *engine.Result, error) {
				made, began = nil, 0
				return runOnce(t, build, engine.Shards(shards), engine.Parallelism(3), engine.Workers(3), engine.Retaining(kept),
					engine.CheckpointDir(dir), engine.CheckpointSupersteps(1), engine.Resume(true))
			}
			loses.step = 3
			_, _, err = run()
			require.ErrorIs(t, err, errLost)
			owners, missing := owned(shards, 3, 3), []int{}
			for _, w := range lost {
				require.NoError(t, kept[w].Close())
				kept[w] = task.NewRetained()
				for shard := range owners {
					if owners[shard] == w {
						missing = append(missing, shard)
					}
				}
			}
			loses.step = 5
			_, _, err = run()
			require.ErrorIs(t, err, errLost)
			if len(lost) > 1 && lost[1] == 1 { // the report of the first queue is lost, which workers 0 and 1 had
				require.Len(t, made, shards)
			} else {
				require.Zero(t, began, "the first queue is left out")
				requireMade(t, shards, false, 3, missing, made)
			}
			loses.step = -1
			got, result, err := run()
			require.NoError(t, err)
			require.Empty(t, made, "all rows are there")
			require.Zero(t, began, "the first queue is left out")
			require.Equal(t, bitsOf(want), bitsOf(got))
			requireSameSeries(t, whole.Report.Queues, result.Report.Queues)
			require.Equal(t, whole.Report.Accumulators, result.Report.Accumulators)
		})
	}
}
