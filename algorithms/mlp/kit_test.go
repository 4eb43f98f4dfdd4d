package mlp_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/mlp"
	"github.com/superstep-ml/superstep/engine"
)

// table returns the table in a file of numbers. label is the index of the label column, whose
// values are texts if words is set.
func table(t testing.TB, path, separator string, header bool, label int, words bool) trial.Table {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if header {
		lines = lines[1:]
	}
	made := trial.Table{N: len(lines)}
	for _, line := range lines {
		cells := strings.Split(line, separator)
		made.D = len(cells) - 1
		for c, cell := range cells {
			if c == label && words {
				made.Words = append(made.Words, strings.TrimSpace(cell))
				continue
			}
			v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
			require.NoError(t, err)
			if c == label {
				made.Label = append(made.Label, v)
			} else {
				made.X = append(made.X, v)
			}
		}
	}
	return made
}

// halves returns the rows with even index and the rows with odd index.
func halves(t trial.Table) (even, odd trial.Table) {
	half := [2]trial.Table{{D: t.D, Sparse: t.Sparse}, {D: t.D, Sparse: t.Sparse}}
	for i := range t.N {
		h := &half[i%2]
		h.N++
		h.X = append(h.X, t.Row(i)...)
		if t.Words != nil {
			h.Words = append(h.Words, t.Words[i])
		} else {
			h.Label = append(h.Label, t.Label[i])
		}
	}
	return half[0], half[1]
}

// rings returns rows of two classes: one class is inside a circle, and the other around it.
func rings(n int) trial.Table {
	t := trial.Gaussian(4, n, 2)
	for i := range n {
		x := t.Row(i)
		class := 0.0
		if x[0]*x[0]+x[1]*x[1] > 1.4 {
			class = 1
		}
		t.Label = append(t.Label, class)
		t.Weight = append(t.Weight, 1+float64(i%3))
	}
	return t
}

// train returns a model trained on a table. p need not name the columns.
func train(t testing.TB, table trial.Table, p mlp.Params, options ...engine.Option) *mlp.Model {
	t.Helper()
	return trial.Train(t, func(b *engine.Builder) *engine.Dataset { return mlp.Train(table.Dataset(b), p) }, mlp.ModelOf, options...)
}

// fails requires that training fails with an error that contains each of the texts.
func fails(t *testing.T, table trial.Table, p mlp.Params, texts ...string) {
	t.Helper()
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(mlp.Train(table.Dataset(b), p), "model")
	}, texts...)
}

// accuracy returns the fraction of rows whose label a model predicts.
func accuracy(m *mlp.Model, t trial.Table) float64 {
	right := 0
	for i := range t.N {
		class := m.Classes.Values[int(m.Predict(t.Row(i)))]
		if t.Words != nil && class == t.Words[i] || t.Words == nil && class == strconv.FormatFloat(t.Label[i], 'g', -1, 64) {
			right++
		}
	}
	return float64(right) / float64(t.N)
}

var (
	regression     = mlp.Params{LabelCol: "label", Hidden: []int{6}, Seed: 1, Activation: mlp.Tanh}
	classification = mlp.Params{LabelCol: "label", Hidden: []int{5}, Seed: 1, Task: mlp.Classification, L2: 1e-3}
)
