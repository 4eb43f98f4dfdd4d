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

// slope returns the gradient of the mean loss, from a loop over rows.
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

// The loss is convex: its only minimum is where its gradient is 0. The model of
// algorithms/logistic without a penalty is the same minimum.
func TestMinimum(t *testing.T) {
	got := minimum(t, 1)
	require.True(t, got.Converged, got.Reason)
	for j, g := range slope(readPatients(t), got.Parameters) {
		require.InDelta(t, 0, g, 1e-5, "derivative %d", j)
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

// Many steps of descent reach the result of the single call.
func TestDescentReachesTheMinimum(t *testing.T) {
	w, losses := descend(readPatients(t), 5000, 0.004)
	require.InDelta(t, minimum(t, 2).Loss, losses[len(losses)-1]/270, 1e-6)
	require.InDeltaSlice(t, minimum(t, 2).Parameters, w[:], 0.01)
}
