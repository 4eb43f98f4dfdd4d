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
	"github.com/superstep-ml/superstep/shared"
)

func TestPassesAllocateNothing(t *testing.T) {
	for _, l := range []kind{kinds()[1], kinds()[2], kinds()[13], kinds()[14]} {
		for _, sparse := range []bool{false, true} {
			table := tableFor(l, design{sparse: sparse, weighted: true})
			with(t, table, objective.Linear{Loss: l.loss}, func(o opened) {
				n := o.e.Dim
				v, steps, indices := parametersFor(n), []float64{0.5, 1}, []int32{0, 3, 3}
				out := make([]float64, 1+n+n*(n+1)/2+o.e.Smoothing.BoundLen)
				pass := func() {
					clear(out)
					first := o.ctx.Shards().Lo
					for _, out := range [][]float64{out[:1+n], out[:1+n+n*(n+1)/2]} {
						_ = o.e.Evaluate(first, v, out)
						_ = o.e.Margins.Start(first, v, out)
						_ = o.e.Margins.Direction(first, v, 1, out)
						_ = o.e.Margins.Gradient(first, 0.5, out)
					}
					_ = o.e.Margins.Trials(first, steps, out)
					_ = o.e.Margins.Advance(first, 0.5)
					_ = o.e.Subspace.Hessian(first, v, optim.LatestSteps, out)
					_ = o.e.Subspace.Slopes(first, v[:1], steps, out)
					_ = o.e.Minibatch.Evaluate(first, indices, v, out)
					if _, ok := l.loss.(objective.Smooth); ok {
						_ = o.e.Smoothing.Bound(first, v, out)
						_ = o.e.Smoothing.Refine(first)
					}
				}
				require.Zero(t, allocations(pass), "%v: a pass must not allocate memory", l.loss)
			})
		}
	}
}

// sums has the sums over all shards, which are reduced as in a queue that minimises.
var sums = shared.Scratch[[]float64]("sums")

func TestSameBits(t *testing.T) {
	wild := trial.Wild(200, 4)
	for _, l := range []objective.Loss{objective.Logistic{}, objective.Softmax{}, objective.Hinge{}} {
		for _, sparse := range []bool{false, true} {
			table := wild
			table.Sparse = sparse
			trial.SameBits(t, func(b *engine.Builder) { collectSums(b, table, l) })
		}
	}
	aft := tableFor(kinds()[13], design{weighted: true})
	trial.SameBits(t, func(b *engine.Builder) { collectSums(b, aft, objective.AFT{}) })
}

// collectSums collects the sums of the passes over all rows.
func collectSums(b *engine.Builder, table trial.Table, loss objective.Loss) {
	checked, err := rows.Check("test", table.Dataset(b), columnsOf(table), loss.Label())
	if err != nil {
		b.Errorf("%w", err)
		return
	}
	l := objective.Linear{Table: checked, Loss: loss}
	evaluator := shared.Scratch[optim.Evaluator]("evaluator")
	kept := shared.PerShard("sums of all shards", shared.Float64s())
	engine.Collect(checked.Init(comqueue.New(b, "sum")).
		Do(func(ctx *comqueue.ComContext) error {
			e, err := l.Open(ctx)
			if err != nil {
				return err
			}
			evaluator.Put(ctx, e)
			n := e.Dim
			sums.Put(ctx, make([]float64, 4*(1+n)+n*(n+1)/2))
			return nil
		}).
		Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			e := evaluator.Get(ctx)
			n := 1 + e.Dim
			v := parametersFor(e.Dim)
			if err := e.Margins.Start(shard, v, out[:n]); err != nil {
				return err
			}
			if err := e.Margins.Direction(shard, v, 0.5, out[n:2*n]); err != nil {
				return err
			}
			if err := e.Margins.Trials(shard, []float64{0.25}, out[2*n:3*n]); err != nil {
				return err
			}
			return e.Hessian(shard, v, out[3*n:])
		})).
		Add(comqueue.AllReduce(sums)).
		Do(func(ctx *comqueue.ComContext) error {
			if ctx.TaskID() == 0 {
				kept.Put(ctx, 0, sums.Get(ctx))
			}
			return nil
		}).
		SetMaxIter(1).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]float64, error) { return kept.Get(ctx, 0), nil })).
		Exec(), "sums")
}

func TestCovarianceOfCoefficients(t *testing.T) {
	// The coefficients are linear in the parameters. Therefore the covariance v·vᵀ of
	// parameters must be converted to c·cᵀ, where c are the coefficients for the parameters v.
	// An omitted intercept has no row in the matrix.
	for _, d := range []design{{}, {sparse: true}, {noIntercept: true}} {
		table := tableFor(kinds()[0], d)
		with(t, table, objective.Linear{Loss: objective.Squared{}, NoIntercept: d.noIntercept}, func(o opened) {
			v := parametersFor(o.e.Dim)
			c, err := o.linear.Coefficients(o.facts, v)
			require.NoError(t, err)
			want := append([]float64(nil), c.Weights...)
			if !d.noIntercept {
				want = append(want, c.Intercepts[0])
			}
			var outer []float64
			for a := range v {
				for b := range a + 1 {
					outer = append(outer, v[a]*v[b])
				}
			}
			got, err := o.linear.Covariance(o.facts, outer)
			require.NoError(t, err)
			at := 0
			for a := range v {
				for b := range a + 1 {
					require.InDelta(t, want[a]*want[b], got[at], 1e-10*(1+want[a]*want[a]+want[b]*want[b]))
					at++
				}
			}
		})
	}
}
