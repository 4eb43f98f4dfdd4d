package naivebayes_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Example runs a job that learns to classify fruit.
func Example() {
	type fruit struct {
		Weight, Length float64
		Name           string
	}
	job := engine.Define("fruit", func(b *engine.Builder, _ struct{}) error {
		rows := operators.FromSlice(b, []fruit{
			{120, 18, "banana"}, {110, 17, "banana"}, {130, 20, "banana"},
			{150, 7, "apple"}, {160, 8, "apple"}, {140, 7.5, "apple"},
		})
		model := naivebayes.Train(rows, naivebayes.Params{FeatureCols: []string{"weight", "length"}, LabelCol: "name"})
		engine.Collect(model, "model")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	m, err := naivebayes.ModelOf(result, "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, x := range [][]float64{{125, 19}, {135, 8}} {
		fmt.Println(x, "is a kind of", m.Classes.Values[m.Predict(x)])
	}
	// Output:
	// [125 19] is a kind of banana
	// [135 8] is a kind of apple
}
