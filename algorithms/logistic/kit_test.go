package logistic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/engine"
)

// train returns a model trained on a table. p need not name the columns.
func train(t testing.TB, table trial.Table, p logistic.Params, options ...engine.Option) *logistic.Model {
	t.Helper()
	p = columns(table, p)
	return trial.Train(t, func(b *engine.Builder) *engine.Dataset { return logistic.Train(table.Dataset(b), p) }, logistic.ModelOf, options...)
}

// columns returns p with the names of the table's columns.
func columns(table trial.Table, p logistic.Params) logistic.Params {
	p.LabelCol = "label"
	if table.Weight != nil {
		p.WeightCol = "weight"
	}
	if table.Offset != nil {
		p.OffsetCol = "offset"
	}
	return p
}

// probabilities returns the predicted probabilities for a row.
func probabilities(t testing.TB, m *logistic.Model, x []float64) []float64 {
	t.Helper()
	p := make([]float64, len(m.Classes.Values))
	require.True(t, m.PredictProbability(x, p))
	return p
}

func higgs(t testing.TB) trial.Table {
	table := trial.Table{D: 28}
	for _, line := range trial.Lines(t, "higgs.tsv") {
		fields := strings.Split(line, "\t")
		for _, f := range fields[1:] {
			table.X = append(table.X, trial.Number(t, f))
		}
		table.Label, table.N = append(table.Label, trial.Number(t, fields[0])), table.N+1
	}
	return table
}
