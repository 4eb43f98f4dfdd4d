package linear_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/engine"
)

// train returns a model trained on a table. p need not name the columns.
func train(t testing.TB, table trial.Table, p linear.Params, options ...engine.Option) *linear.Model {
	t.Helper()
	p = columns(table, p)
	return trial.Train(t, func(b *engine.Builder) *engine.Dataset { return linear.Train(table.Dataset(b), p) }, linear.ModelOf, options...)
}

// columns returns p with the names of the table's columns.
func columns(table trial.Table, p linear.Params) linear.Params {
	p.LabelCol = "label"
	if table.Weight != nil {
		p.WeightCol = "weight"
	}
	if table.Offset != nil {
		p.OffsetCol = "offset"
	}
	return p
}

// predict returns the predictions for the rows of a table, computed by a job.
func predict(t testing.TB, table trial.Table, m *linear.Model, o linear.PredictOptions) []*float64 {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(linear.Predict(table.Dataset(b), m.Dataset(b), o), "predictions")
	})
	type row struct {
		Prediction *float64 `column:"prediction"`
	}
	rows, err := engine.Rows[row](r, "predictions")
	require.NoError(t, err)
	var out []*float64
	for _, r := range rows {
		out = append(out, r.Prediction)
	}
	return out
}

func machine(t testing.TB) trial.Table {
	return trial.Fields(t, trial.Lines(t, "machine.data"), ",", 2, 8)
}

func abalone(t testing.TB) trial.Table {
	return trial.Fields(t, trial.Lines(t, "abalone.csv"), ",", 1, 8)
}

// solve returns x with A·x = b for a symmetric positive definite matrix of n rows, by Gaussian
// elimination with pivoting.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	for k := range n {
		p := k
		for i := k; i < n; i++ {
			if abs(a[i][k]) > abs(a[p][k]) {
				p = i
			}
		}
		a[k], a[p], b[k], b[p] = a[p], a[k], b[p], b[k]
		for i := k + 1; i < n; i++ {
			f := a[i][k] / a[k][k]
			for j := k; j < n; j++ {
				a[i][j] -= f * a[k][j]
			}
			b[i] -= f * b[k]
		}
	}
	x := make([]float64, n)
	for k := n - 1; k >= 0; k-- {
		x[k] = b[k]
		for j := k + 1; j < n; j++ {
			x[k] -= a[k][j] * x[j]
		}
		x[k] /= a[k][k]
	}
	return x
}

func abs(v float64) float64 { return max(v, -v) }
