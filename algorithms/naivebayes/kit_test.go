package naivebayes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/engine"
)

var families = []naivebayes.Family{naivebayes.Gaussian, naivebayes.Multinomial, naivebayes.Complement, naivebayes.Bernoulli}

// small returns 24 rows of 6 features, which are small counts, with three classes and with
// weights.
func small() trial.Table {
	t := trial.Table{N: 24, D: 6}
	for i := range t.N {
		for j := range t.D {
			t.X = append(t.X, float64((i*7+j*3+i*j)%5))
		}
		class := 1
		if i%5 != 0 {
			class = (i*i + i) % 3
		}
		t.Label = append(t.Label, float64(class))
		t.Weight = append(t.Weight, 1+float64(i%4)*0.5)
	}
	return t
}

// widened returns the rows of t with d features. Feature j of t becomes feature j·stride, and
// the other features are 0.
func widened(t trial.Table, d, stride int) trial.Table {
	w := trial.Table{N: t.N, D: d, Label: t.Label, Weight: t.Weight, X: make([]float64, t.N*d)}
	for i := range t.N {
		for j, v := range t.Row(i) {
			w.X[i*d+j*stride] = v
		}
	}
	return w
}

// of returns parameters for the family f that are suitable for small counts.
func of(f naivebayes.Family) naivebayes.Params {
	p := naivebayes.Params{LabelCol: "label", Family: f}
	if f != naivebayes.Gaussian {
		p.Smoothing = 0.5
	}
	if f == naivebayes.Bernoulli {
		p.Binarize = 1
	}
	return p
}

// train returns a model trained on a table. p need not name the columns.
func train(t testing.TB, table trial.Table, p naivebayes.Params, options ...engine.Option) *naivebayes.Model {
	t.Helper()
	return trial.Train(t, func(b *engine.Builder) *engine.Dataset { return naivebayes.Train(table.Dataset(b), p) }, naivebayes.ModelOf, options...)
}

// fails requires that training fails with an error that contains each of the texts.
func fails(t *testing.T, table trial.Table, p naivebayes.Params, texts ...string) {
	t.Helper()
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(naivebayes.Train(table.Dataset(b), p), "model")
	}, texts...)
}

// probabilities returns the probabilities of a row.
func probabilities(t testing.TB, m *naivebayes.Model, x []float64) []float64 {
	t.Helper()
	out := make([]float64, len(m.Priors))
	require.True(t, m.PredictProbability(x, out), fmt.Sprint(x))
	return out
}
