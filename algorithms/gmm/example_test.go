package gmm_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/gmm"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Example runs a job that fits two components to numbers and predicts the component of each
// number.
func Example() {
	type sample struct {
		Height float64 `column:"height"`
	}
	type told struct {
		Height    float64
		Component int64
	}
	job := engine.Define("heights", func(b *engine.Builder, _ struct{}) error {
		rows := operators.FromSlice(b, []sample{{1.1}, {0.9}, {5.2}, {1.0}, {4.8}, {5.0}})
		mixture := gmm.Train(rows, gmm.Params{FeatureCols: []string{"height"}, Means: [][]float64{{0}, {6}}})
		engine.Collect(mixture, "mixture")
		engine.Collect(gmm.Predict(rows, mixture, gmm.PredictOptions{}), "rows")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	m, err := gmm.ModelOf(result, "mixture")
	if err != nil {
		fmt.Println(err)
		return
	}
	for c, mean := range m.Means {
		fmt.Printf("component %d: weight %.2f, mean %.2f, variance %.4f\n", c, m.Weights[c], mean[0], m.Covariances[c][0])
	}
	rows, err := engine.Rows[told](result, "rows")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range rows {
		fmt.Println(row.Height, "is of component", row.Component)
	}
	// Output:
	// component 0: weight 0.50, mean 1.00, variance 0.0067
	// component 1: weight 0.50, mean 5.00, variance 0.0267
	// 1.1 is of component 0
	// 0.9 is of component 0
	// 5.2 is of component 1
	// 1 is of component 0
	// 4.8 is of component 1
	// 5 is of component 1
}
