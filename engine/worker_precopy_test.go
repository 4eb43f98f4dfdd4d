package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// stepGate is a Gate at a superstep.
type stepGate struct {
	at      int
	entered chan struct{}
	once    sync.Once
	passes  chan struct{}
	opened  chan struct{}
}

func newStepGate(at int) *stepGate {
	return &stepGate{at: at, entered: make(chan struct{}), passes: make(chan struct{}), opened: make(chan struct{})}
}

func (g *stepGate) Entered() { <-g.entered }
func (g *stepGate) Open()    { close(g.opened) }

func (g *stepGate) Pass(done <-chan struct{}) bool {
	select {
	case g.passes <- struct{}{}:
		return true
	case <-done:
		return false
	}
}

// wait is called in a superstep.
func (g *stepGate) wait(ctx context.Context, step int) error {
	if step < g.at {
		return nil
	}
	g.once.Do(func() { close(g.entered) })
	select {
	case <-g.passes:
	case <-g.opened:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// movedJob is a job with a queue over rows that an operator makes.
type movedJob struct {
	*engine.Job[struct{}]
	gate *stepGate
	made atomic.Int64 // rows that the operator has made
}

func newMovedJob(supersteps int, shuffled bool) *movedJob {
	j := &movedJob{gate: newStepGate(5)}
	data := comqueue.PartitionedRows("rows")
	sums := shared.Replicated("sums", shared.Float64s())
	seen := shared.PerShard("seen", shared.Float64s())
	j.Job = engine.Define("moved", func(b *engine.Builder, _ struct{}) error {
		drawn := operators.Generate(b, 3000, func(draws sharding.Random, i int64) []float64 {
			return []float64{draws.NormFloat64(), draws.Float64(), float64(i)}
		})
		points := operators.Map(drawn, func(v []float64) point {
			j.made.Add(1)
			return point{v}
		})
		if shuffled {
			points = operators.Rebalance(points)
		}
		closed := comqueue.New(b, "moved").
			InitWithPartitionedData(data, points).
			Begin(func(ctx *comqueue.ComContext) error {
				sums.Put(ctx, make([]float64, 3))
				for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
					seen.Put(ctx, shard, []float64{float64(shard)})
				}
				return nil
			}).
			Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				rows, err := comqueue.NewRowReader[point](data.Get(ctx, shard))
				if err != nil {
					return err
				}
				var row point
				own := seen.Get(ctx, shard)
				for i := range rows.Len() {
					if err := rows.Read(i, &row); err != nil {
						return err
					}
					for k, v := range row.At {
						out[k] += v / float64(ctx.StepNo()+i)
					}
				}
				own[0] = own[0]/2 + out[0]
				return nil
			})).
			Add(comqueue.AllReduce(sums)).
			Do(func(ctx *comqueue.ComContext) error {
				if ctx.TaskID() == 0 {
					return j.gate.wait(ctx.Context(), ctx.StepNo())
				}
				return nil
			}).
			SetMaxIter(supersteps).
			CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]point, error) {
				return []point{{append([]float64{seen.Get(ctx, shard)[0]}, sums.Get(ctx)...)}}, nil
			})).
			Exec()
		engine.Collect(closed, "closed")
		return nil
	})
	return j
}

// undisturbed returns the result of the job in one process.
func undisturbed(t *testing.T, supersteps int, shuffled bool) string {
	j := newMovedJob(supersteps, shuffled)
	j.gate.Open()
	want, err := engine.Run(t.Context(), j.Job, struct{}{}, engine.Shards(16), engine.Parallelism(2))
	require.NoError(t, err)
	defer want.Release()
	return engine.ResultText(want)
}

// TestRowsAreCopiedAhead requires that the processes of the next attempt have all rows that they need when it begins:
// no row is sent over the edges of the plan, no operator makes a row again, and the result has the bits of an
// undisturbed run. Fresh processes, which were deployed and never started, are kept for the next attempt.
func TestRowsAreCopiedAhead(t *testing.T) {
	for name, m := range map[string]engine.Move{
		"2 to 3":                       {Before: []int{1, 1, 0}, After: []int{1, 1, 1}},
		"3 to 2":                       {Before: []int{1, 1, 1}, After: []int{1, 1, 0}},
		"1 to 2":                       {Before: []int{1, 0}, After: []int{1, 1}},
		"another process":              {Before: []int{1, 1, 0}, After: []int{1, 0, 1}, OrderNow: []int{0, 2, 1}},
		"another worker 0":             {Before: []int{1, 2, 0}, After: []int{0, 2, 2}, OrderNow: []int{2, 1, 0}},
		"two others, of several slots": {Before: []int{2, 2, 0, 0}, After: []int{0, 0, 1, 2}, OrderNow: []int{2, 3, 0, 1}},
		"the same, in another order":   {Before: []int{1, 1}, After: []int{1, 1}, OrderNow: []int{1, 0}},
	} {
		for _, shuffled := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", shuffled ", shuffled), func(t *testing.T) {
				j := newMovedJob(400, shuffled)
				m.Gate = j.gate
				got := engine.RunMoved(t, j.Job, struct{}{}, m)
				defer got.Result.Release()
				require.Equal(t, undisturbed(t, 400, shuffled), engine.ResultText(got.Result))
				require.EqualValues(t, 3000, j.made.Load(), "each row is made once: %s", got.Log)
				require.Zero(t, got.Bytes, got.Log)
				require.Contains(t, got.Log, "rows were copied ahead of the next attempt")
				require.NotContains(t, got.Log, "not copied")
			})
		}
	}
}
