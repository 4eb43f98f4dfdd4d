package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// tally is a row with a number of rows.
type tally struct{ Rows float64 }

// counting counts the rows of a subtask, and emits the number at the end.
type counting struct {
	engine.BaseOperator
	n int
}

func (o *counting) Process(_ *engine.Context, _, _ int, rows engine.Batch, _ engine.Output) error {
	o.n += rows.Len()
	return nil
}

func (o *counting) Finish(c *engine.Context, out engine.Output) error {
	return arrowrows.Emit(c.Allocator, out, c.Range.Hi-1, []tally{{float64(o.n)}})
}

// TestRowsOfFinishAreNotCopied requires that rows which an operator has emitted in Finish are not copied ahead, as they
// depend on how shards were divided among subtasks: their sum is right at another parallelism.
func TestRowsOfFinishAreNotCopied(t *testing.T) {
	gate := newStepGate(5)
	data, sums := comqueue.PartitionedRows("data"), shared.Scratch[[]float64]("sums")
	job := engine.Define("tallies", func(b *engine.Builder, _ struct{}) error {
		drawn := operators.Generate(b, 700, func(draws sharding.Random, i int64) tally { return tally{draws.Float64()} })
		counts := b.Add(engine.Spec{Op: "Count", Schema: drawn.Schema(), Inputs: []engine.Port{{From: drawn}}, Operator: func() engine.Operator { return &counting{} }})
		engine.Collect(comqueue.New(b, "q").InitWithPartitionedData(data, operators.Rebalance(counts)).
			Init(func(ctx *comqueue.ComContext) error { sums.Put(ctx, make([]float64, 1)); return nil }).
			Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				for _, v := range data.Get(ctx, shard).Floats("rows") {
					out[0] += v
				}
				return nil
			})).
			Add(comqueue.AllReduce(sums)).
			Do(func(ctx *comqueue.ComContext) error {
				if ctx.TaskID() == 0 {
					return gate.wait(ctx.Context(), ctx.StepNo())
				}
				return nil
			}).
			SetMaxIter(400).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]tally, error) { return []tally{{sums.Get(ctx)[0]}}, nil })).
			Exec(), "total")
		return nil
	})
	got := engine.RunMoved(t, job, struct{}{}, engine.Move{Before: []int{1, 1, 0}, After: []int{1, 1, 1}, Gate: gate})
	defer got.Result.Release()
	rows, err := engine.Rows[tally](got.Result, "total")
	require.NoError(t, err)
	require.Equal(t, []tally{{700}}, rows)
	require.Contains(t, got.Log, "shards=0")
	require.Contains(t, got.Log, "may not give them")
}
