package glm_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// train trains on a table, whose columns are those of trial.
func train(t testing.TB, table trial.Table, p glm.Params) *glm.Model {
	t.Helper()
	m, err := glm.ModelOf(trial.Run(t, trains(table, p)), "model")
	require.NoError(t, err)
	return m
}

// trains returns a job that trains on a table.
func trains(table trial.Table, p glm.Params) func(b *engine.Builder) {
	return func(b *engine.Builder) {
		operators.Collect(b, "model", glm.Train(table.Dataset(b), columns(table, p)))
	}
}

// columns names the columns of a table in parameters.
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

// counts returns n rows of d features, and labels above 0 whose mean they change.
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

// abalone returns the first rows, without the sex.
func abalone(t testing.TB, n int) trial.Table {
	table := trial.Table{D: 7}
	for _, line := range lines(t, "abalone.csv")[:n] {
		fields := strings.Split(line, ",")
		for _, f := range fields[1:8] {
			table.X = append(table.X, number(t, f))
		}
		table.Label, table.N = append(table.Label, number(t, fields[8])), table.N+1
	}
	return table
}

// heart returns the first columns, and labels 0 and 1.
func heart(t testing.TB, d int) trial.Table {
	table := trial.Table{D: d}
	for _, line := range lines(t, "heart_scale") {
		fields := strings.Fields(line)
		x := make([]float64, 13)
		for _, f := range fields[1:] {
			at, v, _ := strings.Cut(f, ":")
			x[int(number(t, at))-1] = number(t, v)
		}
		table.X, table.Label, table.N = append(table.X, x[:d]...), append(table.Label, (number(t, fields[0])+1)/2), table.N+1
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
