package objective_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// opened is an evaluator over all rows. It may be used only in the queue whose context is ctx.
type opened struct {
	ctx    *comqueue.ComContext
	e      optim.Evaluator
	linear objective.Linear
	facts  *rows.Facts
}

// sum returns the sum of the n results of f over all shards.
func (o opened) sum(t testing.TB, n int, f func(shard int, out []float64) error) []float64 {
	total := make([]float64, n)
	require.NoError(t, o.ctx.ForShards(func(shard int) error {
		out := make([]float64, n)
		err := f(shard, out)
		for i, v := range out {
			total[i] += v
		}
		return err
	}))
	return total
}

// evaluate returns the sums of loss and gradient over all shards.
func (o opened) evaluate(t testing.TB, v []float64) []float64 {
	return o.sum(t, 1+o.e.Dim, func(shard int, out []float64) error { return o.e.Evaluate(shard, v, out) })
}

// columnsOf returns the columns that a table has.
func columnsOf(table trial.Table) rows.Columns {
	c := rows.Columns{Vector: "features", Label: "label"}
	if table.Weight != nil {
		c.Weight = "weight"
	}
	if table.Offset != nil {
		c.Offset = "offset"
	}
	return c
}

// allocations returns the number of allocations of f. It takes the minimum of a few runs,
// because the job around f sometimes allocates too.
func allocations(f func()) float64 {
	least := testing.AllocsPerRun(5, f)
	for i := 0; i < 4 && least > 0; i++ {
		least = min(least, testing.AllocsPerRun(5, f))
	}
	return least
}

// with opens an objective over a table on one subtask and calls f with it.
func with(t testing.TB, table trial.Table, l objective.Linear, f func(o opened)) {
	t.Helper()
	called := false
	trial.Run(t, func(b *engine.Builder) {
		checked, err := rows.Check("test", table.Dataset(b), columnsOf(table), l.Loss.Label())
		require.NoError(t, err)
		l.Table = checked
		q := checked.Init(comqueue.New(b, "evaluate")).
			Do(func(ctx *comqueue.ComContext) error {
				e, err := l.Open(ctx)
				if err != nil {
					return err
				}
				facts, err := checked.FactsOf(ctx)
				if err != nil {
					return err
				}
				called = true
				f(opened{ctx, e, l, facts})
				return nil
			}).
			SetMaxIter(1).
			CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]float64, error) { return nil, nil }))
		engine.Collect(q.Exec(), "none")
	}, engine.Parallelism(1))
	require.True(t, called)
}
