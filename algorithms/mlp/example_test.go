package mlp_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/mlp"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Example runs a job that learns exclusive or, which no linear model can represent.
func Example() {
	type row struct {
		A, B   float64
		Differ bool
	}
	job := engine.Define("xor", func(b *engine.Builder, _ struct{}) error {
		rows := operators.FromSlice(b, []row{{0, 0, false}, {0, 1, true}, {1, 0, true}, {1, 1, false}})
		model := mlp.Train(rows, mlp.Params{
			FeatureCols: []string{"a", "b"}, LabelCol: "differ", Task: mlp.Classification, Hidden: []int{8}, L2: 1e-3, Seed: 1,
		})
		engine.Collect(model, "model")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	m, err := mlp.ModelOf(result, "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, x := range [][]float64{{0, 0}, {0, 1}, {1, 0}, {1, 1}} {
		fmt.Println(x, m.Classes.Values[int(m.Predict(x))])
	}
	// Output:
	// [0 0] false
	// [0 1] true
	// [1 0] true
	// [1 1] false
}
