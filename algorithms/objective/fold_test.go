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
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// foldedSums returns the sums of the passes over all rows. The parameters change in place
// between passes. If folded is set, the evaluator adds up the sums of shards itself, and may
// reuse coefficients for all shards of a pass. Otherwise it writes the sums of each shard to a
// separate buffer.
func foldedSums(t *testing.T, table trial.Table, l objective.Linear, folded bool, parallelism int) []float64 {
	evaluator := shared.Scratch[optim.Evaluator]("evaluator")
	r := trial.Run(t, func(b *engine.Builder) {
		checked, err := rows.Check("test", table.Dataset(b), columnsOf(table), l.Loss.Label())
		require.NoError(t, err)
		l.Table = checked
		var stages []comqueue.Stage
		for i := range passes {
			at := func(ctx *comqueue.ComContext, shard int, out []float64) error {
				e := evaluator.Get(ctx)
				return pass(e, i, shard, parameters.Get(ctx), out)
			}
			fold := func(ctx *comqueue.ComContext, shards sharding.Range, out []float64) (bool, error) {
				if !folded {
					return false, nil
				}
				e := evaluator.Get(ctx)
				err := ctx.ForShardsWithin(shards, func(shard int) error { return at(ctx, shard, nil) })
				if err != nil {
					return true, err
				}
				return true, e.Fold(shards, out)
			}
			stages = append(stages, comqueue.ForEachShard(sums, at, comqueue.FoldedBy(fold)), comqueue.AllReduce(sums),
				comqueue.Do(func(ctx *comqueue.ComContext) error {
					results.Put(ctx, append(results.Get(ctx), sums.Get(ctx)...))
					for j, v := range parameters.Get(ctx) {
						parameters.Get(ctx)[j] = v*1.5 + 0.01
					}
					return nil
				}))
		}
		q := checked.Init(comqueue.New(b, "sum")).
			Do(func(ctx *comqueue.ComContext) error {
				e, err := l.Open(ctx)
				if err != nil {
					return err
				}
				if folded {
					e.Ordered()
				}
				require.NotNil(t, e.Fold)
				evaluator.Put(ctx, e)
				sums.Put(ctx, make([]float64, 1+e.Dim))
				results.Put(ctx, nil)
				parameters.Put(ctx, parametersFor(e.Dim))
				return nil
			})
		for _, s := range stages {
			q = q.Add(s)
		}
		engine.Collect(q.SetMaxIter(1).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]float64, error) { return results.Get(ctx), nil })).
			Exec(), "sums")
	}, engine.Parallelism(parallelism), engine.Shards(32), engine.CheckBroadcasts(false))
	got, err := engine.Rows[float64](r, "sums")
	require.NoError(t, err)
	return got
}

// These objects hold the results of the passes so far, and the inputs of the passes.
var (
	results    = shared.Scratch[[]float64]("results")
	parameters = shared.Scratch[[]float64]("parameters")
)

// TestFoldedSumsHaveTheSameBits compares the sums that the evaluator adds up itself with the
// sums over separate buffers of shards. It requires the same bits for all magnitudes, with
// empty shards and with features without influence, at any parallelism.
func TestFoldedSumsHaveTheSameBits(t *testing.T) {
	wild := trial.Wild(200, 4)
	few := trial.Wild(21, 4) // some shards are empty
	still := trial.Wild(100, 5)
	for i := range still.N {
		still.Row(i)[2] = 0 // makes the feature constant, so that its coefficient has no influence
	}
	constant := trial.Gaussian(5, 320, 3) // in every shard, the contribution of a constant feature to gradients is −0
	for i := range constant.N {
		x := constant.Row(i)
		x[0], x[1], x[2] = 0.01*x[0], 0.01*x[1], 1
		constant.Label = append(constant.Label, 1-float64(max(0, i%9-7)))
	}
	cases := []struct {
		table  trial.Table
		sparse bool
		linear objective.Linear
	}{
		{wild, true, objective.Linear{Loss: objective.Logistic{}}},
		{few, true, objective.Linear{Loss: objective.Logistic{}, NoIntercept: true}},
		{few, false, objective.Linear{Loss: objective.Logistic{}}},
		{still, false, objective.Linear{Loss: objective.Logistic{}, NoIntercept: true}},
		{constant, true, objective.Linear{Loss: objective.Logistic{}}},
		{wild, false, objective.Linear{Loss: objective.Softmax{}}},
		{few, true, objective.Linear{Loss: objective.Softmax{}}},
		{tableFor(kinds()[13], design{weighted: true}), true, objective.Linear{Loss: objective.AFT{}}},
	}
	for i, c := range cases {
		c.table.Sparse = c.sparse
		want := bitsOf(foldedSums(t, c.table, c.linear, false, 1))
		for _, parallelism := range []int{1, 3, 8} {
			if parallelism == 8 && i > 1 && !testsize.Soak {
				continue
			}
			require.Equal(t, want, bitsOf(foldedSums(t, c.table, c.linear, true, parallelism)), "case %d, parallelism %d: the folded sums must have the bits of separate buffers", i, parallelism)
		}
	}
}

// TestProbesOfRowsWithoutWeights requires that rows without weights are probed like rows that
// all have weight 1.
func TestProbesOfRowsWithoutWeights(t *testing.T) {
	plain := trial.Wild(200, 4)
	plain.Weight = nil
	weighted := plain
	weighted.Weight = make([]float64, plain.N)
	for i := range weighted.Weight {
		weighted.Weight[i] = 1
	}
	var bits [2][]uint64
	for i, table := range []trial.Table{plain, weighted} {
		with(t, table, objective.Linear{Loss: objective.Logistic{}}, func(o opened) {
			n := o.e.Dim
			v := parametersFor(n)
			o.sum(t, 1+n, func(shard int, out []float64) error { return o.e.Margins.Start(shard, v, out) })
			o.sum(t, 1+n, func(shard int, out []float64) error { return o.e.Margins.Direction(shard, v, 0.5, out) })
			o.sum(t, 0, func(shard int, _ []float64) error { return o.e.Margins.Advance(shard, 0.5) })
			got := o.sum(t, 4, func(shard int, out []float64) error { return o.e.Subspace.Hessian(shard, v, 1, out) })
			got = append(got, o.sum(t, 3, func(shard int, out []float64) error {
				return o.e.Subspace.Slopes(shard, []float64{1, 0.5}, []float64{0, 2}, out)
			})...)
			bits[i] = bitsOf(got)
		})
	}
	require.Equal(t, bits[0], bits[1])
}

// TestRowsThatAreAlike requires that passes at the start of training give the same results with
// a constant offset as with an equal intercept. Without offsets, all rows of a class have the
// same loss and slope at the start, and are evaluated by different code.
func TestRowsThatAreAlike(t *testing.T) {
	plain := trial.Wild(200, 4)
	shifted := plain
	shifted.Offset = make([]float64, plain.N)
	for _, loss := range []objective.Loss{objective.Logistic{}, objective.Hinge{}, objective.SquaredHinge{}, objective.Perceptron{}} {
		for _, intercept := range []float64{0, -0.7} {
			for i := range shifted.Offset {
				shifted.Offset[i] = intercept
			}
			var bits [2][]uint64
			for i, table := range []trial.Table{plain, shifted} {
				with(t, table, objective.Linear{Loss: loss}, func(o opened) {
					n := o.e.Dim
					v := make([]float64, n)
					if i == 0 {
						v[n-1] = intercept
					}
					got := o.evaluate(t, v)
					got = append(got, o.sum(t, 1+n, func(shard int, out []float64) error { return o.e.Margins.Start(shard, v, out) })...)
					// The margins of the rows are equal at the point, but they differ along the
					// direction.
					bits[i] = bitsOf(append(got, o.sum(t, 1+n, func(shard int, out []float64) error { return o.e.Margins.Direction(shard, parametersFor(n), 0.5, out) })...))
					require.Zero(t, allocations(func() { _ = o.e.Evaluate(o.ctx.Shards().Lo, v, got[:1+n]) }))
				})
			}
			require.Equal(t, bits[0], bits[1], "%v: a constant offset must have the effect of an intercept", loss)
		}
	}
}
