package objective_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// TestRefusedStepsOfNewtonNeedNoReads requires that rejected steps of Newton's method are
// shortened by means of the cached margins. The steps must be the same as without cached
// margins, with fewer reads.
func TestRefusedStepsOfNewtonNeedNoReads(t *testing.T) {
	table := trial.Gaussian(8, 200, 2)
	for i := range table.N {
		table.X[2*i] *= 3
		table.Label = append(table.Label, float64((i%3)*(i%50)*(i%50)))
	}
	result := func(hide bool) optim.Result {
		return trainAltered(t, table, rows.NumberLabel, objective.Poisson{}, optim.Settings{Method: optim.Newton, Tol: 1e-10, Start: []float64{0, 0, -9}}, func(e *optim.Evaluator) {
			if hide {
				e.Margins, e.HessianCost, e.Subspace = optim.Margins{}, 0, optim.Subspace{}
			}
		})
	}
	kept, read := result(false), result(true)
	require.True(t, kept.Converged)
	require.InEpsilon(t, read.Loss, kept.Loss, 1e-12)
	require.InDelta(t, read.Iterations, kept.Iterations, 2)
	require.Greater(t, read.Reads, float64(read.Iterations)+6, "steps must have been rejected, or the test proves nothing")
	require.Less(t, kept.Reads, read.Reads-3)
	for _, it := range kept.Record {
		require.LessOrEqual(t, it.Reads, 2.0)
	}
}

// stopping is a loss that cancels the job in the middle of a shard.
type stopping struct {
	objective.Squared
	calls *atomic.Int64
	after int64
	stop  context.CancelFunc
}

func (l stopping) At(b *objective.Batch) {
	if l.calls.Add(1) == l.after {
		l.stop()
	}
	l.Squared.At(b)
}

// TestEndedJobsLeaveShardsUnfinished requires that passes stop within a shard when the job is
// cancelled.
func TestEndedJobsLeaveShardsUnfinished(t *testing.T) {
	table := trial.Gaussian(9, 3000, 40)
	for i := range table.N {
		table.Label = append(table.Label, table.Row(i)[0])
	}
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton} {
		ctx, cancel := context.WithCancel(t.Context())
		calls := new(atomic.Int64)
		job := engine.Anonymous(func(b *engine.Builder) error {
			checked, err := rows.Check("test", table.Dataset(b), columnsOf(table), rows.NumberLabel)
			if err != nil {
				return err
			}
			engine.Collect(optim.Minimize(b, optim.Problem{
				Name: "fit", Init: checked.Init, Settings: optim.Settings{Method: m},
				Objective: objective.Linear{Table: checked, Loss: stopping{calls: calls, after: 5, stop: cancel}},
				Closer:    comqueue.Output(func(*comqueue.ComContext) ([]string, error) { return nil, nil }),
			}), "fit")
			return nil
		})
		_, err := engine.Run(ctx, job, struct{}{}, engine.Parallelism(1), engine.Shards(1))
		require.ErrorIs(t, err, context.Canceled)
		require.LessOrEqual(t, calls.Load(), int64(6), "only a few of the shard's 40 chunks may be evaluated")
		cancel()
	}
}
