//go:build soak

package objective_test

import (
	"testing"
	clock "time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// TestNewtonWithManyParameters requires that with 5,000 features Newton's method finds the same
// optimum as L-BFGS in a few iterations, at any parallelism.
func TestNewtonWithManyParameters(t *testing.T) {
	const n, d = 1200, 5000
	table := trial.Gaussian(11, n, d)
	for i := range table.N {
		y, x := 0.0, table.Row(i)
		if x[0]-x[1]+0.5*x[2]+float64(i%5)-2 > 0 {
			y = 1
		}
		table.Label = append(table.Label, y)
	}
	var losses []float64
	for _, s := range []optim.Settings{
		{Method: optim.LBFGS, L2: 0.1, Tol: 1e-10, MaxIter: 500}, {Method: optim.Newton, L2: 0.1, Tol: 1e-10}, {Method: optim.Newton, L2: 0.1, Tol: 1e-10},
	} {
		began := clock.Now()
		f, _ := fitOf(t, table.Dataset, columnsOf(table), objective.Linear{Loss: objective.Logistic{}}, s, engine.Parallelism(1+len(losses)%2), engine.CheckBroadcasts(false))
		require.True(t, f.Converged)
		t.Logf("%v on %d subtasks: %d iterations, %v reads, %v", s.Method, 1+len(losses)%2, f.Iterations, f.Reads, clock.Since(began).Round(clock.Millisecond))
		losses = append(losses, f.Loss)
	}
	require.InEpsilon(t, losses[0], losses[1], 1e-9)
	require.Equal(t, losses[1], losses[2])
}
