//go:build !race

// This test counts allocations. Under the race detector it would also count the allocations of
// the detector.

package gmm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gmm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
)

// TestSuperstepsAllocateNothing requires that a training with many supersteps allocates as much
// as a training with few supersteps. Exceptions are the lists of reported values, which grow,
// and variations of the Go runtime.
func TestSuperstepsAllocateNothing(t *testing.T) {
	const few, many = 10, 50
	table := blobs(7, 1000, 3, 3)
	for _, shape := range shapes {
		t.Log(shape)
		// The file of the model grows by one number per superstep.
		trial.StepAllocations(t, 3, few, many, func(b *engine.Builder, updates int) *engine.Dataset {
			p := gmm.Params{Means: [][]float64{{0, 4, 8}, {4, 8, 0}, {8, 0, 4}}, Tol: -1, MaxIter: updates, Covariance: shape}
			return gmm.Train(table.Dataset(b), p)
		}, func(*engine.Result, int) float64 { return 0 })
	}
}

func TestPredictAllocatesNothing(t *testing.T) {
	table := blobs(7, 100, 3, 2)
	m := train(t, table, gmm.Params{K: 2, MaxIter: 3})
	out := make([]float64, 2)
	require.Zero(t, testing.AllocsPerRun(200, func() {
		m.Predict(table.Row(3))
		m.Probabilities(table.Row(5), out)
	}))
}
