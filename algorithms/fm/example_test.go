package fm_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/fm"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Example runs a job that learns an area, which is the product of two features.
func Example() {
	type field struct {
		Width, Length, Area float64
	}
	job := engine.Define("areas", func(b *engine.Builder, _ struct{}) error {
		var fields []field
		for i := range 30 {
			w, l := float64(i%5), float64(i%7)
			fields = append(fields, field{w, l, w * l})
		}
		rows := operators.FromSlice(b, fields)
		model := fm.Train(rows, fm.Params{
			FeatureCols: []string{"width", "length"}, LabelCol: "area", Factors: 2, Seed: 1, Tol: 1e-8, MaxIter: 1000,
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
	m, err := fm.ModelOf(result, "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("3 by 6 is %.2f\n", m.Predict([]float64{3, 6}))
	fmt.Printf("10 by 20 is %.1f\n", m.Predict([]float64{10, 20}))
	// Output:
	// 3 by 6 is 18.00
	// 10 by 20 is 200.0
}
