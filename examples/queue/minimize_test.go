package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// slope returns the gradient of the mean loss for weights w, computed in a loop over patients.
func slope(patients []patient, w []float64) (g [14]float64) {
	for _, p := range patients {
		margin := w[0]
		for j, x := range p.features {
			margin += w[j+1] * x
		}
		s := -p.label / (1 + math.Exp(p.label*margin)) / float64(len(patients))
		g[0] += s
		for j, x := range p.features {
			g[j+1] += s * x
		}
	}
	return g
}

func minimum(t *testing.T, p int) optim.Minimum {
	t.Helper()
	r, err := engine.Run(t.Context(), train, args{Steps: 1, Rate: 1, LBFGS: true}, engine.Parallelism(p))
	require.NoError(t, err)
	defer r.Release()
	rows, err := engine.Rows[optim.Minimum](r, "minimum")
	require.NoError(t, err)
	require.Len(t, rows, 1)
	return rows[0]
}

// TestMinimum requires that the gradient is 0 at the minimum that the program finds; as the
// loss is convex, only the minimum has this property. It also compares the minimum with the
// model that algorithms/logistic trains without a penalty.
func TestMinimum(t *testing.T) {
	got := minimum(t, 1)
	require.True(t, got.Converged, got.Reason)
	for j, g := range slope(readPatients(t), got.Parameters) {
		require.InDelta(t, 0, g, 1e-5, "derivative %d must be 0 at the minimum", j)
	}
	require.Equal(t, got, minimum(t, 3))

	estimator := engine.Define("estimator", func(b *engine.Builder, _ struct{}) error {
		rows := operators.ReadLibSVM(b, "data/heart_scale.libsvm", operators.LibSVMOptions{FS: bundled})
		engine.Collect(logistic.Train(rows, logistic.Params{VectorCol: "features", LabelCol: "label"}), "model")
		return nil
	})
	r, err := engine.Run(t.Context(), estimator, struct{}{})
	require.NoError(t, err)
	defer r.Release()
	m, err := logistic.ModelOf(r, "model")
	require.NoError(t, err)
	require.InDelta(t, m.Intercepts[0], got.Parameters[0], 1e-3)
	require.InDeltaSlice(t, m.Coefficients[0], got.Parameters[1:], 1e-3)
}

// TestDescentReachesTheMinimum requires that gradient descent with many steps comes close to the
// minimum that optim.MinimizeRows finds.
func TestDescentReachesTheMinimum(t *testing.T) {
	w, losses := descend(readPatients(t), 5000, 0.004)
	require.InDelta(t, minimum(t, 2).Loss, losses[len(losses)-1]/270, 1e-6)
	require.InDeltaSlice(t, minimum(t, 2).Parameters, w[:], 0.01)
}
