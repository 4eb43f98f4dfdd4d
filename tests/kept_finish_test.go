package tests

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// partial counts the rows of a subtask, and emits the number at the end.
type partial struct {
	engine.BaseOperator
	bomb *bomb
	n    int
}

func (o *partial) Process(_ *engine.Context, _, _ int, rows engine.Batch, _ engine.Output) error {
	o.n += rows.Len()
	return nil
}

func (o *partial) EndShard(*engine.Context, int, engine.Output) error { return o.bomb.tick() }

func (o *partial) Finish(c *engine.Context, out engine.Output) error {
	return arrowrows.Emit(c.Allocator, out, c.Range.Hi-1, []cell{{Value: float64(o.n)}})
}

// TestRowsOfFinishGoOn requires that a queue that adds up what subtasks have counted gets the same sum
// after runs that failed, at other parallelisms, while the rows were read and later.
func TestRowsOfFinishGoOn(t *testing.T) {
	const rows, shards = 80, 8
	for _, shuffled := range []bool{false, true} {
		for ticks := 1; ticks <= shards+6; ticks++ {
			for p := 1; p <= 4; p++ {
				t.Run(fmt.Sprint(ticks, " ticks, then ", p, " subtasks, shuffled ", shuffled), func(t *testing.T) {
					kept := make([]*task.Retained, 4)
					for i := range kept {
						kept[i] = task.NewRetained()
						defer func() { require.NoError(t, kept[i].Close()) }()
					}
					var b bomb
					b.left.Store(int64(ticks))
					_, err := countInParts(t, rows, shuffled, &b, engine.Shards(shards), engine.Parallelism(2), engine.Workers(2), engine.Retaining(kept))
					require.ErrorIs(t, err, errBomb)
					for _, lost := range []int{-1, 0, 1} {
						if lost >= 0 {
							require.NoError(t, kept[lost].Close())
							kept[lost] = task.NewRetained()
						}
						b.left.Store(math.MaxInt32)
						if lost == 0 || lost < 0 && ticks%2 == 0 {
							b.left.Store(shards + 4)
						}
						got, err := countInParts(t, rows, shuffled, &b, engine.Shards(shards), engine.Parallelism(p), engine.Workers(p), engine.Retaining(kept))
						if err != nil {
							require.ErrorIs(t, err, errBomb)
							continue
						}
						require.EqualValues(t, rows, got)
					}
				})
			}
		}
	}
}

// countInParts counts rows: subtasks count parts, and a queue adds them up in each superstep.
func countInParts(t *testing.T, n int, shuffled bool, b *bomb, options ...engine.Option) (total float64, err error) {
	sums := shared.Scratch[[]float64]("sums")
	data := comqueue.PartitionedRows("data")
	job := engine.Define("parts", func(build *engine.Builder, _ struct{}) error {
		d := operators.FromSlice(build, make([]cell, n))
		parts := build.Add(engine.Spec{Op: "Partial", Schema: d.Schema(), Inputs: []engine.Port{{From: d}}, Operator: func() engine.Operator { return &partial{bomb: b} }})
		if shuffled {
			parts = operators.Rebalance(parts)
		}
		engine.Collect(comqueue.New(build, "q").InitWithPartitionedData(data, parts).
			Init(func(ctx *comqueue.ComContext) error { sums.Put(ctx, make([]float64, 1)); return nil }).
			Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				for _, v := range data.Get(ctx, shard).Floats("value") {
					out[0] += v
				}
				return nil
			})).
			Add(comqueue.AllReduce(sums)).
			Do(func(*comqueue.ComContext) error { return b.tick() }).
			SetMaxIter(3).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]cell, error) { return []cell{{Value: sums.Get(ctx)[0]}}, nil })).Exec(), "total")
		return nil
	})
	result, err := engine.Run(t.Context(), job, struct{}{}, options...)
	if err != nil {
		return 0, err
	}
	defer result.Release()
	rows, err := engine.Rows[cell](result, "total")
	require.NoError(t, err)
	require.Len(t, rows, 1)
	return rows[0].Value, nil
}
