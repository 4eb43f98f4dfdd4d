package gbdt_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

// TestPairByHand compares the tree of one query of two rows, where the worse row is ranked
// first, with a computation by hand. The gradient of the pair is weighted by the change of NDCG
// divided by the sum of 0.01 and the difference of the scores.
func TestPairByHand(t *testing.T) {
	type row struct {
		X, Margin, Label float64
		Query            int64
	}
	rows := []row{{0, 0.5, 0, 1}, {1, -0.25, 1, 1}}
	m := trainRows(t, rows, gbdt.Params{
		Objective: gbdt.LambdaMART, FeatureCols: []string{"x"}, LabelCol: "label", GroupCol: "query", MarginCols: []string{"margin"},
		NumTrees: 1, LearningRate: 1, Lambda: 1, MinChildWeight: -1,
	})
	change := (1 - 1/math.Log2(3)) / (0.01 + 0.75)
	p := 1 / (1 + math.Exp(-0.75))
	factor := math.Log2(1+2*p*change) / (2 * p * change)
	g, h := p*change*factor, p*(1-p)*change*factor
	require.InDelta(t, -g/(h+1), m.Predict([]float64{0}), 1e-9)
	require.InDelta(t, g/(h+1), m.Predict([]float64{1}), 1e-9)
}

// TestDropsAreBounded requires that at most MaxDrop rounds are dropped. The weight of the last
// tree shows their number.
func TestDropsAreBounded(t *testing.T) {
	p := gbdt.Params{LabelCol: "label", NumTrees: 8, MaxDepth: 2, DART: true, SkipDrop: -1, DropRate: 1, LearningRate: 0.4}
	for _, most := range []int{1, 3} {
		p.MaxDrop = most
		m := train(t, made(95, 80, 3), p)
		require.InDelta(t, 1/(float64(most)+0.4), m.Ensemble.Trees[7].Weight, 1e-12)
	}
}

// TestScoresOfGOSS requires that GOSS takes the rows with the largest products of gradient and
// hessian. These are the rows of weight 4 with the product 6·4, and not those of weight 1,
// whose gradients of 10 are larger.
func TestScoresOfGOSS(t *testing.T) {
	table := trial.Table{D: 1}
	for i := range 10 {
		label, weight := 10.0, 1.0
		if i%2 == 0 {
			label, weight = 1.5, 4
		}
		table.N++
		table.X, table.Label, table.Weight = append(table.X, float64(i)), append(table.Label, label), append(table.Weight, weight)
	}
	m := train(t, table, gbdt.Params{
		LabelCol: "label", WeightCol: "weight", Base: []float64{0}, NumTrees: 1, LearningRate: 1.5, GOSS: true, TopRate: 0.5, OtherRate: 1e-12,
	})
	require.Equal(t, int64(5), m.Ensemble.Trees[0].Nodes[0].Count)
	require.InDelta(t, 20, m.Ensemble.Trees[0].Nodes[0].Cover, 1e-9)
}

// TestStepsOfLeavesThatAreMadeAnew requires that renewed leaves are bounded by MaxDeltaStep
// too.
func TestStepsOfLeavesThatAreMadeAnew(t *testing.T) {
	table := labelled(made(96, 80, 3), func(y float64) float64 { return 100 * (y - 2) })
	for _, o := range renewing {
		m := train(t, table, gbdt.Params{LabelCol: "label", Objective: o, Base: []float64{0}, NumTrees: 1, LearningRate: 1, MaxDeltaStep: 0.5})
		least, most := math.Inf(1), math.Inf(-1)
		for _, n := range m.Ensemble.Trees[0].Nodes {
			least, most = min(least, n.Value), max(most, n.Value)
		}
		require.Equal(t, []float64{-0.5, 0.5}, []float64{least, most}, o)
	}
}
