//go:build !race

// These tests train many models, which takes too long under the race detector. Other tests run
// the same code under it.

package gbdt_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

// priorOf returns the prior of rows with one constant feature and the given labels and weights.
func priorOf(t *testing.T, label, weight []float64, p gbdt.Params) float64 {
	t.Helper()
	table := trial.Table{N: len(label), D: 1, X: make([]float64, len(label)), Label: label, Weight: weight}
	p.LabelCol, p.NumTrees, p.NoTrainMetrics = "label", 1, true
	if weight != nil {
		p.WeightCol = "weight"
	}
	return train(t, table, p).Ensemble.Base[0]
}

// TestPriorOfAnyMagnitude requires that the prior of Squared is the mean, up to one or two
// rounding errors, for weights and labels of any magnitude and sign. The expected mean is
// computed with rational numbers.
func TestPriorOfAnyMagnitude(t *testing.T) {
	for _, size := range []float64{-1e-100, -0x1p-40, -1, 1e-90, 1e100} {
		for _, weigh := range []float64{1e-19, 1, 1e30} {
			var label, weight []float64
			sum, all := new(big.Rat), new(big.Rat)
			for i := range 25 {
				y, w := size*(1+float64(i)/7), weigh*(0.1+float64(i*i%11))
				label, weight = append(label, y), append(weight, w)
				r := new(big.Rat).SetFloat64(w)
				all.Add(all, r)
				sum.Add(sum, r.Mul(r, new(big.Rat).SetFloat64(y)))
			}
			want, _ := sum.Quo(sum, all).Float64()
			require.InEpsilon(t, want, priorOf(t, label, weight, gbdt.Params{}), 1e-14, "the prior must be the mean for labels of %v and weights of %v", size, weigh)
		}
	}
}

// TestPriorOfLabelsThatCancel requires an error of at most 2^-30 of the unit of the sum where
// large labels cancel.
func TestPriorOfLabelsThatCancel(t *testing.T) {
	got := priorOf(t, []float64{1e16, 0x1p-20, -1e16, 0x1p-21}, nil, gbdt.Params{})
	require.Equal(t, 1.5*0x1p-20/4, got)
	got = priorOf(t, []float64{1e16, -0x1.8p-8, -1e16, -0x1p-9}, nil, gbdt.Params{})
	require.Equal(t, -2*0x1p-8/4, got)
}

// TestQuantilePriorOfEqualWeights requires that equal weights that are not powers of two give
// the same quantiles as no weights.
func TestQuantilePriorOfEqualWeights(t *testing.T) {
	for _, n := range []int{2, 4, 10, 20, 30} {
		label := make([]float64, n)
		for i := range label {
			label[i] = float64(i * 7 % n)
			if n%7 == 0 {
				label[i] = float64(i)
			}
		}
		for _, at := range []float64{0.1, 0.3, 0.5, 0.7, 0.8} {
			p := gbdt.Params{Objective: gbdt.Quantile, QuantileAt: at}
			want := sortedQuantile(append([]float64(nil), label...), at)
			require.Equal(t, want, priorOf(t, label, nil, p))
			for _, w := range []float64{0.1, 1.0 / 3, 0.7, 1e-7, 1e9 + 0.1} {
				weight := make([]float64, n)
				for i := range weight {
					weight[i] = w
				}
				require.Equal(t, want, priorOf(t, label, weight, p), "%d rows of weight %v must have the same quantile %v as without weights", n, w, at)
			}
		}
	}
	require.Equal(t, 2.5, priorOf(t, []float64{1, 2, 3}, []float64{0.1, 0.2, 0.3}, gbdt.Params{Objective: gbdt.Absolute}))
}

// TestTinyNumbers requires an error with advice if squares or products of the numbers are 0.
func TestTinyNumbers(t *testing.T) {
	table := weighted(made(95, 40, 3))
	with := func(label, weight float64) trial.Table {
		c := labelled(table, func(y float64) float64 { return math.Abs(y) * label })
		c.Weight = append([]float64(nil), table.Weight...)
		for i := range c.Weight {
			c.Weight[i] *= weight
		}
		return c
	}
	for _, o := range []gbdt.Objective{gbdt.Squared, gbdt.Huber, gbdt.Poisson, gbdt.Tweedie, gbdt.Absolute, gbdt.Quantile, gbdt.Gamma} {
		p := gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: o, NumTrees: 2, MinChildWeight: -1, Lambda: -1, MinSplitGain: 0}
		for _, weight := range []float64{1e-310, 5e-324, 1e-200} {
			fails(t, with(1, weight), p, "the largest weight of a row, times that of its class, is", "scale weights up")
		}
		switch o {
		case gbdt.Absolute, gbdt.Quantile, gbdt.Gamma: // gradients do not depend on the magnitude of labels
			require.Greater(t, len(train(t, with(1e-170, 1), p).Ensemble.Trees[0].Nodes), 1, o)
		default:
			fails(t, with(1e-170, 1), p, `column "label": the largest weighted label is`, "scale labels up")
		}
		if o == gbdt.Squared {
			require.Greater(t, len(train(t, with(1e-50, 1e-50), p).Ensemble.Trees[0].Nodes), 9, "training must accept small numbers whose squares do not underflow")
		}
	}
	// The check must use the largest weight of all rows, whichever shard has it.
	label, weight := make([]float64, 16), make([]float64, 16)
	for i := range label {
		label[i], weight[i] = float64(i), 1
		if i%2 == 1 {
			weight[i] = 5e-324
		}
	}
	require.Equal(t, 7.0, priorOf(t, label, weight, gbdt.Params{}))
	zero := labelled(table, func(float64) float64 { return 0 })
	require.Len(t, train(t, zero, gbdt.Params{LabelCol: "label"}).Ensemble.Trees[0].Nodes, 1, "labels that are all 0 must not be refused as too small")
}

// TestHugeNumbers requires that weights whose products with class weights overflow float64 are
// refused before they are summed.
func TestHugeNumbers(t *testing.T) {
	table := labelled(weighted(made(96, 20, 3)), func(y float64) float64 { return kernelBool(y > 3) })
	for i := range table.Weight {
		table.Weight[i] *= 1e200
	}
	p := gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: gbdt.Logistic, ScalePosWeight: 1e200}
	fails(t, table, p, `column "label": the weighted labels are so large that they exceed float64: scale them down`)
}
