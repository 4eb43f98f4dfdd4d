package glm_test

import (
	"context"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type fleet struct {
	Age      float64 `column:"age"`
	LogYears float64 `column:"log_years"`
	Claims   float64 `column:"claims"`
}

// Example models how the number of claims depends on the age of cars, for fleets that were
// insured for different numbers of years.
func Example() {
	var fleets []fleet
	for _, f := range [][3]float64{{1, 100, 9}, {2, 80, 10}, {3, 120, 15}, {5, 60, 12}, {6, 90, 17}, {8, 50, 15}, {9, 40, 11}, {12, 30, 15}} {
		fleets = append(fleets, fleet{Age: f[0], LogYears: math.Log(f[1]), Claims: f[2]})
	}
	job := engine.Anonymous(func(b *engine.Builder) error {
		rows := operators.FromSlice(b, fleets)
		engine.Collect(glm.Train(rows, glm.Params{
			FeatureCols: []string{"age"}, LabelCol: "claims", OffsetCol: "log_years", Family: glm.Poisson,
		}), "model")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	m, err := glm.ModelOf(result, "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, age := range []float64{1, 10} {
		fmt.Printf("%v years old: %.3f claims a year\n", age, m.Predict([]float64{age}))
	}
	for _, t := range m.Summary.Inference.Terms {
		fmt.Printf("%s: %.3f ± %.3f, p %.2g\n", t.Name, t.Estimate, t.StdError, t.PValue)
	}
	// Output:
	// 1 years old: 0.097 claims a year
	// 10 years old: 0.365 claims a year
	// age: 0.147 ± 0.028, p 2.5e-07
	// intercept: -2.478 ± 0.200, p 2.2e-35
}
