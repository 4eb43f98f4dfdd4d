//go:build !race

// These tests count allocations. They are not built with the race detector, whose own
// allocations would be counted too.

package naivebayes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

func TestPredictAllocatesNothing(t *testing.T) {
	table := small()
	for _, f := range families {
		m := train(t, table, of(f))
		out := make([]float64, 3)
		indices, values := trial.Sparse(table.Row(2))
		step := trial.Step(t, m, table.Row(1))
		require.Zero(t, testing.AllocsPerRun(100, func() {
			m.Predict(table.Row(3))
			m.PredictSparse(indices, values)
			m.PredictProbability(table.Row(5), out)
			m.PredictProbabilitySparse(indices, values, out)
			step()
		}))
	}
}
