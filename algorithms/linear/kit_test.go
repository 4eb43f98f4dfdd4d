package linear_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// train trains on a table, whose columns are those of trial.
func train(t testing.TB, table trial.Table, p linear.Params, options ...engine.Option) *linear.Model {
	t.Helper()
	p = columns(table, p)
	r := trial.Run(t, func(b *engine.Builder) { operators.Collect(b, "model", linear.Train(table.Dataset(b), p)) }, options...)
	m, err := linear.ModelOf(r, "model")
	require.NoError(t, err)
	return m
}

// columns names the columns of a table in parameters.
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

// predict predicts the rows of a table with a job.
func predict(t testing.TB, table trial.Table, m *linear.Model, o linear.PredictOptions) []*float64 {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) {
		operators.Collect(b, "predictions", linear.Predict(table.Dataset(b), m.Dataset(b), o))
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
