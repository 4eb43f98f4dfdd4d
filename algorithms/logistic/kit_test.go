package logistic_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// train trains on a table, whose columns are those of trial.
func train(t testing.TB, table trial.Table, p logistic.Params, options ...engine.Option) *logistic.Model {
	t.Helper()
	p = columns(table, p)
	r := trial.Run(t, func(b *engine.Builder) { operators.Collect(b, "model", logistic.Train(table.Dataset(b), p)) }, options...)
	m, err := logistic.ModelOf(r, "model")
	require.NoError(t, err)
	return m
}

// columns names the columns of a table in parameters.
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

// probabilities predicts a row.
func probabilities(t testing.TB, m *logistic.Model, x []float64) []float64 {
	t.Helper()
	p := make([]float64, len(m.Classes.Values))
	require.True(t, m.PredictProbability(x, p))
	return p
}

// lines reads a file of testdata.
func lines(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func number(t testing.TB, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	require.NoError(t, err)
	return v
}

func heart(t testing.TB) trial.Table {
	table := trial.Table{D: 13}
	for _, line := range lines(t, "heart_scale") {
		fields := strings.Fields(line)
		x := make([]float64, 13)
		for _, f := range fields[1:] {
			at, v, _ := strings.Cut(f, ":")
			x[int(number(t, at))-1] = number(t, v)
		}
		table.X, table.Label, table.N = append(table.X, x...), append(table.Label, number(t, fields[0])), table.N+1
	}
	return table
}

func iris(t testing.TB) trial.Table {
	table := trial.Table{D: 4}
	for _, line := range lines(t, "iris.csv")[1:] {
		fields := strings.Split(line, ",")
		for _, f := range fields[:4] {
			table.X = append(table.X, number(t, f))
		}
		table.Words, table.N = append(table.Words, strings.TrimSpace(fields[4])), table.N+1
	}
	return table
}

func cancer(t testing.TB) trial.Table {
	table := trial.Table{D: 9}
	for _, line := range lines(t, "breast-cancer-wisconsin.csv") {
		if strings.Contains(line, "?") {
			continue
		}
		fields := strings.Split(line, ",")
		for _, f := range fields[:9] {
			table.X = append(table.X, number(t, f))
		}
		table.Label, table.N = append(table.Label, number(t, fields[9])), table.N+1
	}
	return table
}

func higgs(t testing.TB) trial.Table {
	table := trial.Table{D: 28}
	for _, line := range lines(t, "higgs.tsv") {
		fields := strings.Split(line, "\t")
		for _, f := range fields[1:] {
			table.X = append(table.X, number(t, f))
		}
		table.Label, table.N = append(table.Label, number(t, fields[0])), table.N+1
	}
	return table
}

// expected reads a JSON file of testdata.
func expected[T any](t testing.TB, name string) map[string]T {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	var all map[string]T
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}
