package lightgbm_test

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
)

// Example reads a model of LightGBM and predicts with it.
func Example() {
	m, err := lightgbm.Load("testdata/lg_breast_cancer.txt")
	if err != nil {
		panic(err)
	}
	fmt.Println(m.Objective, m.Parameters["sigmoid"], len(m.Ensemble.Trees), "trees of", len(m.Ensemble.Features), "features")
	scorer := m.Ensemble.Scorer()
	row := make([]float64, len(m.Ensemble.Features))
	margin := make([]float64, 1)
	scorer.Scores(row, margin)
	m.Transform(margin, margin)
	fmt.Printf("%.4f\n", margin[0])
	// Output:
	// binary 1 39 trees of 30 features
	// 0.9811
}
