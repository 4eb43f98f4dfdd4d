package glm_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
)

// train trains a model on a table. Params p need not name the columns.
func train(t testing.TB, table trial.Table, p glm.Params) *glm.Model {
	t.Helper()
	m, err := glm.ModelOf(trial.Run(t, trains(table, p)), "model")
	require.NoError(t, err)
	return m
}

// trains returns a job that trains on a table.
func trains(table trial.Table, p glm.Params) func(b *engine.Builder) {
	return func(b *engine.Builder) {
		engine.Collect(glm.Train(table.Dataset(b), columns(table, p)), "model")
	}
}

// columns returns p with the names of the table's columns.
func columns(table trial.Table, p glm.Params) glm.Params {
	p.LabelCol = "label"
	if table.Weight != nil {
		p.WeightCol = "weight"
	}
	if table.Offset != nil {
		p.OffsetCol = "offset"
	}
	return p
}

// counts returns n rows of d features. Labels are above 0, and their mean depends on the
// features.
func counts(n, d int) trial.Table {
	table := trial.Gaussian(uint64(7*n+d), n, d)
	for i := range n {
		m := 1.0
		for j, x := range table.Row(i) {
			m += 0.3 * float64(j%3-1) * x
		}
		table.Label = append(table.Label, 1+math.Floor(math.Exp(m)*(1+0.5*math.Sin(float64(13*i)))))
		table.Weight = append(table.Weight, 0.5+float64(i%4)/2)
	}
	return table
}

// heart returns the first d columns of the heart data, with labels 0 and 1.
func heart(t testing.TB, d int) trial.Table {
	all := trial.Heart(t)
	table := trial.Table{N: all.N, D: d}
	for i := range all.N {
		table.X, table.Label = append(table.X, all.Row(i)[:d]...), append(table.Label, (all.Label[i]+1)/2)
	}
	return table
}
