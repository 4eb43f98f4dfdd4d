package fm_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/fm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestProductsAreFound requires that the coefficients of products of features are recovered,
// which is impossible for a linear model.
func TestProductsAreFound(t *testing.T) {
	table := products(200, false)
	for _, sparse := range []bool{false, true} {
		table.Sparse = sparse
		p := regression
		p.Tol, p.MaxIter = 1e-9, 2000
		m := train(t, table, p)
		require.Less(t, m.Summary.Loss, 1e-9)
		require.InDelta(t, 3, m.Intercept, 1e-3)
		require.InDeltaSlice(t, []float64{1, -2, 0}, m.Linear, 1e-3)
		pair := func(a, b int) (sum float64) {
			for f := range m.Factors[a] {
				sum += m.Factors[a][f] * m.Factors[b][f]
			}
			return sum
		}
		require.InDelta(t, 1.5, pair(0, 1), 1e-3)
		require.InDelta(t, -1, pair(1, 2), 1e-3)
		require.InDelta(t, 0, pair(0, 2), 1e-3)
		x := []float64{2, 1, -1}
		require.InDelta(t, 3+2-2+3+1, m.Predict(x), 1e-2)
	}
	// Without factors the model is least squares, which cannot fit the products.
	p := regression
	p.Factors = -1
	require.Greater(t, train(t, table, p).Summary.Loss, 1.0)
}

// TestLinear compares the predictions of a machine without factors with published predictions
// of least squares with an intercept.
func TestLinear(t *testing.T) {
	table := trial.TableOf([]float64{16.8, 6.7, 6.9, 8.0}, []float64{1, 7, 9}, []float64{1, 3, 3}, []float64{1, 2, 4}, []float64{1, 3, 4})
	m := train(t, table, fm.Params{LabelCol: "label", Factors: -1, Tol: 1e-10})
	require.InDelta(t, 16.81478873, m.Predict(table.Row(0)), 1e-6)
	require.InDelta(t, 6.77394366, m.Predict(table.Row(1)), 1e-6)
	require.True(t, m.Summary.Converged)
}

// TestExclusiveOr requires that a model learns classes that only the product of two features
// separates.
func TestExclusiveOr(t *testing.T) {
	table := trial.Table{N: 40, D: 2}
	for i := range table.N {
		a, b := float64(i%2), float64(i/2%2)
		table.X = append(table.X, 2*a-1, 2*b-1)
		table.Words = append(table.Words, map[bool]string{true: "same", false: "differ"}[a == b])
	}
	p := fm.Params{LabelCol: "label", Task: fm.Classification, L2: 0.01, L2Factors: 0.01, Seed: 3}
	m := train(t, table, p)
	require.Equal(t, []string{"differ", "same"}, m.Classes.Values)
	for i := range table.N {
		require.Equal(t, table.Words[i], m.Classes.Values[int(m.Predict(table.Row(i)))])
	}
	require.Greater(t, probability(t, m, 1, 1), 0.9)
	require.Less(t, probability(t, m, 1, -1), 0.1)
	p.Factors = -1
	require.InDelta(t, 0.5, probability(t, train(t, table, p), 1, 1), 1e-3)
}

// TestStochastic requires that SGD with AdaGrad comes near to the optimum of L-BFGS.
func TestStochastic(t *testing.T) {
	table := products(400, true)
	best := train(t, table, classification)
	p := classification
	p.Method, p.MaxIter, p.Tol = optim.SGD, 60, -1
	p.Stochastic = optim.Stochastic{Update: optim.AdaGrad, Schedule: optim.Constant, Rate: 0.3}
	m := train(t, table, p)
	require.InDelta(t, best.Summary.Loss, m.Summary.Loss, 0.02)
	require.Equal(t, "SGD", m.Summary.Method)
}

// TestWeights requires that a row of weight n counts as n rows.
func TestWeights(t *testing.T) {
	table := products(30, false)
	repeated := trial.Table{D: 3}
	for i := range table.N {
		table.Label[i] += 0.5 * math.Sin(float64(i))
		for range int(table.Weight[i]) {
			repeated.X = append(repeated.X, table.Row(i)...)
			repeated.Label = append(repeated.Label, table.Label[i])
			repeated.N++
		}
	}
	p := regression
	p.Factors, p.L2Factors, p.L2, p.MaxIter, p.Tol = 1, 0.1, 0.1, 1000, 1e-8
	plain := train(t, repeated, p)
	p.WeightCol = "weight"
	weighted := train(t, table, p)
	require.InDelta(t, plain.Summary.Loss, weighted.Summary.Loss, 1e-9)
	require.InDeltaSlice(t, plain.Linear, weighted.Linear, 1e-4)
}

// TestFeaturesThatDoNotOccur requires that, of very many declared features, only those that
// occur are trained. They must have the same initial factors as in rows that declare only these
// features.
func TestFeaturesThatDoNotOccur(t *testing.T) {
	small := products(60, true)
	small.Sparse = true
	wide := trial.Table{N: 60, D: 70_000, Label: small.Label, X: make([]float64, 60*70_000), Sparse: true}
	for i := range 60 {
		copy(wide.X[i*70_000:], small.Row(i))
	}
	p := classification
	a, b := train(t, small, p, engine.Shards(2)), train(t, wide, p, engine.Shards(2))
	require.Nil(t, a.Columns)
	require.Equal(t, []int32{0, 1, 2}, b.Columns)
	require.Equal(t, 70_000, b.Dim)
	require.Equal(t, a.Linear, b.Linear)
	indices, values := trial.Sparse(small.Row(7))
	want := a.MarginSparse(indices, values)
	require.Equal(t, want, b.MarginSparse(indices, values))
	require.Equal(t, want, b.MarginSparse(append(indices, 69_999), append(values, 5)), "a feature that did not occur in training must not change the margin")
	require.Equal(t, want, b.Margin(wide.Row(7)))
}

func TestFewRows(t *testing.T) {
	// There are more features than rows, and constant and collinear features.
	table := trial.TableOf([]float64{1, 2}, []float64{1, 5, 2, 10}, []float64{2, 5, 4, 10})
	m := train(t, table, regression)
	require.InDelta(t, 1, m.Predict(table.Row(0)), 1e-2)
	one := train(t, trial.TableOf([]float64{7}, []float64{1, 2}), regression)
	require.InDelta(t, 7, one.Predict([]float64{1, 2}), 1e-2)
}

func TestSameBits(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		table := products(120, true)
		table.Sparse = sparse
		for _, p := range []fm.Params{
			{LabelCol: "label", WeightCol: "weight", Factors: 2, Task: fm.Classification, L2: 0.01, MaxIter: 6},
			{LabelCol: "label", WeightCol: "weight", Factors: 2, MaxIter: 2, Method: optim.SGD},
		} {
			trial.SameBits(t, func(b *engine.Builder) {
				rows := table.Dataset(b)
				m := fm.Train(rows, p)
				engine.Collect(operators.Select(m, "model"), "model")
				engine.Collect(p.Apply(rows, m), "rows")
			}, "fm")
		}
	}
	wild := trial.Wild(100, 3)
	for i := range wild.X {
		wild.X[i] /= 1e10
	}
	trial.SameBits(t, func(b *engine.Builder) {
		m := fm.Train(wild.Dataset(b), fm.Params{LabelCol: "label", WeightCol: "weight", Task: fm.Classification, MaxIter: 5})
		engine.Collect(operators.Select(m, "model"), "model")
	}, "fm")
}
