package fm_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/fm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
)

// products returns rows with the label 3 + x0 − 2·x1 + 1.5·x0·x1 − x1·x2. If classes is set,
// the label is 1 if this number is above 3, and 0 otherwise.
func products(n int, classes bool) trial.Table {
	t := trial.Gaussian(4, n, 3)
	for i := range n {
		x := t.Row(i)
		y := 3 + x[0] - 2*x[1] + 1.5*x[0]*x[1] - x[1]*x[2]
		if classes {
			y = math.Max(0, math.Copysign(1, y-3))
		}
		t.Label = append(t.Label, y)
		t.Weight = append(t.Weight, 1+float64(i%3))
	}
	return t
}

// train returns a model trained on a table. Params p need not name the columns.
func train(t testing.TB, table trial.Table, p fm.Params, options ...engine.Option) *fm.Model {
	t.Helper()
	return trial.Train(t, func(b *engine.Builder) *engine.Dataset { return fm.Train(table.Dataset(b), p) }, fm.ModelOf, options...)
}

// fails requires that training fails with an error that contains the texts.
func fails(t *testing.T, table trial.Table, p fm.Params, texts ...string) {
	t.Helper()
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(fm.Train(table.Dataset(b), p), "model")
	}, texts...)
}

// probability returns the probability of the second class.
func probability(t testing.TB, m *fm.Model, x ...float64) float64 {
	t.Helper()
	both, again := make([]float64, 2), make([]float64, 2)
	require.True(t, m.PredictProbability(x, both))
	indices, values := trial.Sparse(x)
	require.True(t, m.PredictProbabilitySparse(indices, values, again))
	require.Equal(t, both, again)
	require.InDelta(t, 1, both[0]+both[1], 1e-15)
	return both[1]
}

var (
	regression     = fm.Params{LabelCol: "label", Factors: 3, Seed: 1}
	classification = fm.Params{LabelCol: "label", Factors: 3, Seed: 1, Task: fm.Classification, L2: 1e-3, L2Factors: 1e-3}
)
