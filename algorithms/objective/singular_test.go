package objective_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// TestNewtonWithoutCurvature requires that Newton's method reaches the optimum in few
// iterations if the matrix of second derivatives is singular. It is singular for the softmax
// loss, because adding a number to the coefficients of a feature for all classes changes
// nothing. It is also singular if one feature is the sum of other features.
func TestNewtonWithoutCurvature(t *testing.T) {
	table := trial.Gaussian(11, 240, 5)
	noise := trial.Gaussian(12, 240, 1)
	for i := range table.N {
		x := table.Row(i)
		x[4] = x[0] + x[1]
		m := x[0] - x[2] + noise.X[i]
		table.Label = append(table.Label, float64(int(max(0, min(2, m+1.5)))))
	}
	for _, l2 := range []float64{0, 1e-3} {
		newton := fit(t, table, objective.Linear{Loss: objective.Softmax{}}, optim.Settings{Method: optim.Newton, L2: l2, Tol: 1e-9})
		lbfgs := fit(t, table, objective.Linear{Loss: objective.Softmax{}}, optim.Settings{Method: optim.LBFGS, L2: l2, Tol: 1e-9, MaxIter: 500})
		require.True(t, newton.Converged, newton.Reason)
		require.InDelta(t, lbfgs.Loss, newton.Loss, 1e-9*lbfgs.Loss)
		require.LessOrEqual(t, newton.Iterations, int64(15))
		for _, w := range newton.Weights {
			require.Less(t, max(w, -w), 100.0, "coefficients in singular directions must stay small")
		}
	}
}
