package xgboost_test

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// Example writes a tree with one split to a file for XGBoost and reads it back.
func Example() {
	stump := &tree.Ensemble{
		Features: []string{"age"}, Outputs: 1, Base: []float64{0}, Single: true,
		Trees: []tree.Tree{{Weight: 1, Nodes: []tree.Node{
			{Left: 1, Right: 2, Threshold: 40, Flags: tree.DefaultLeft}, {Value: -1}, {Value: 1},
		}}},
	}
	m, err := xgboost.New(stump, "binary:logistic", 0)
	if err != nil {
		panic(err)
	}
	file, err := m.EncodeUBJSON()
	if err != nil {
		panic(err)
	}
	back, err := xgboost.Decode(file)
	if err != nil {
		panic(err)
	}
	scorer := back.Ensemble.Scorer()
	margin, p := make([]float64, 1), make([]float64, 1)
	for _, age := range []float64{30, 40, math.NaN()} {
		scorer.Scores([]float64{age}, margin)
		back.Transform(margin, p)
		fmt.Printf("%v: %.3f\n", age, p[0])
	}
	// Output:
	// 30: 0.269
	// 40: 0.731
	// NaN: 0.269
}
