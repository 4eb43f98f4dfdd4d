//go:build !race

// The race detector allocates for itself, which is not what is counted here.

package gbdt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
)

func TestPredictAllocatesNothing(t *testing.T) {
	m, table := softmaxModel(t)
	out, margins := make([]float64, 3), make([]float64, 3)
	leaves, why := make([]int32, len(m.Ensemble.Trees)), make([]float64, m.Contributions())
	indices, values := []int32{0, 2}, []float64{1, 3}
	layout := model.NewLayout("features")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	row := layout.NewRow()
	row[0].SetDense(table.Row(1))
	require.NoError(t, step(row))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		m.Predict(table.Row(3))
		m.PredictSparse(indices, values)
		m.PredictProbability(table.Row(5), out)
		m.PredictProbabilitySparse(indices, values, out)
		m.Margins(table.Row(2), margins)
		m.MarginsSparse(indices, values, margins)
		m.Leaves(table.Row(2), leaves)
		m.Contribute(table.Row(2), why)
		if step(row) != nil {
			panic("the step fails")
		}
	}))
}
