//go:build !race

// This test counts allocations. Under the race detector it would also count the allocations of
// the detector.

package fm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

func TestPredictAllocatesNothing(t *testing.T) {
	table := products(50, true)
	m := train(t, table, classification)
	indices, values := trial.Sparse(table.Row(2))
	out := make([]float64, 2)
	step := trial.Step(t, m, table.Row(1))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		m.Predict(table.Row(3))
		m.PredictSparse(indices, values)
		m.PredictProbability(table.Row(5), out)
		step()
	}))
}
