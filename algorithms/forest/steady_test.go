//go:build !race

// These tests count allocations. The race detector allocates too, which would distort the
// counts.

package forest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

func TestPredictAllocatesNothing(t *testing.T) {
	for _, task := range []forest.Task{forest.Regression, forest.Classification} {
		table := classes(1, 100, 4, 3)
		m := train(t, table, forest.Params{LabelCol: "label", Task: task, NumTrees: 5})
		out := make([]float64, 3)
		indices, values := trial.Sparse(table.Row(2))
		step := trial.Step(t, m, table.Row(1))
		m.PredictSparse(indices, values)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			m.Predict(table.Row(3))
			m.PredictSparse(indices, values)
			m.PredictProbability(table.Row(5), out)
			m.PredictProbabilitySparse(indices, values, out)
			step()
		}))
	}
}
