package gbdt_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
)

// TestOverflowingGradientsEndTheTraining requires that training ends with an error that gives
// advice if gradients overflow.
func TestOverflowingGradientsEndTheTraining(t *testing.T) {
	table := made(91, 60, 3)
	fails(t, table, gbdt.Params{LabelCol: "label", Base: []float64{1e308}, NoTrainMetrics: true}, "round 1: the objective squared", "not finite or too large", "lower LearningRate")
	fails(t, table, gbdt.Params{LabelCol: "label", LearningRate: 1e200, NoTrainMetrics: true}, "the objective squared", "not finite or too large", "Base")
}

// TestDivergingMarginsEndTheTraining requires that training ends with an error if margins
// diverge. It must not end if a metric is undefined for another reason.
func TestDivergingMarginsEndTheTraining(t *testing.T) {
	table := labelled(made(92, 60, 3), func(y float64) float64 { return math.Abs(y) + 0.1 })
	for _, o := range []gbdt.Objective{gbdt.Poisson, gbdt.Gamma, gbdt.Tweedie} {
		texts := []string{"round", o.String() + "_deviance of the training rows is", "have diverged", "lower LearningRate"}
		for _, base := range []float64{-800, 800} {
			if o == gbdt.Gamma && base > 0 {
				continue // with Gamma such margins fall back to the labels
			}
			fails(t, table, gbdt.Params{LabelCol: "label", Objective: o, NumTrees: 5, Base: []float64{base}}, texts...)
		}
		fails(t, table, gbdt.Params{LabelCol: "label", Objective: o, LearningRate: 1e10}, texts...)
	}
	fails(t, table, gbdt.Params{LabelCol: "label", LearningRate: 1e10}, "rmse", "have diverged")

	m := train(t, table, gbdt.Params{LabelCol: "label", NumTrees: 3, Base: []float64{1e200}})
	require.True(t, math.IsNaN(last(m, 0, 0)), "rmse must be NaN where squares overflow; this is no error, because the margins approach the labels")
	require.Less(t, m.Predict(table.Row(0)), 1e200)

	none := gbdt.CustomMetric{Name: "none", Sum: func(*gbdt.Rows) (float64, float64) { return math.NaN(), 1 }}
	m = train(t, table, gbdt.Params{LabelCol: "label", NumTrees: 3, Metrics: []string{}, CustomMetrics: []gbdt.CustomMetric{none}})
	require.Equal(t, 3, m.Rounds())

	two := labelled(table, func(y float64) float64 { return kernelBool(y > 2) })
	two.Weight = slices.Repeat([]float64{1}, two.N)
	one := two
	one.Weight = one.Label // in this set only the rows of one class have a weight above 0
	m = train(t, two, gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: gbdt.Logistic, Base: []float64{0}, NumTrees: 3, Metrics: []string{"auc", "logloss"}}, one)
	require.True(t, math.IsNaN(last(m, 1, 0)))
	require.Less(t, last(m, 1, 1), math.Ln2)
}
