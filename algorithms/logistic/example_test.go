package logistic_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type attempt struct {
	Hours  float64 `column:"hours"`
	Passed string  `column:"passed"`
}

// Example predicts whether students pass an examination, from the hours that they studied.
func Example() {
	attempts := []attempt{{0.5, "no"}, {1, "no"}, {1.5, "no"}, {1.75, "yes"}, {2, "no"}, {2.5, "yes"}, {3, "no"}, {3.5, "yes"}, {4, "yes"}, {5, "yes"}}
	job := engine.Anonymous(func(b *engine.Builder) error {
		rows := operators.FromSlice(b, attempts)
		engine.Collect(logistic.Train(rows, logistic.Params{FeatureCols: []string{"hours"}, LabelCol: "passed", Inference: true}), "model")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	m, err := logistic.ModelOf(result, "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	p := make([]float64, 2)
	for _, hours := range []float64{1, 2, 4} {
		x := []float64{hours}
		m.PredictProbability(x, p)
		fmt.Printf("%v hours: %s (%.2f)\n", hours, m.Classes.Values[m.Predict(x)], p[1])
	}
	for _, t := range m.Summary.Inference.Terms {
		fmt.Printf("%s: %.2f ± %.2f\n", t.Name, t.Estimate, t.StdError)
	}
	// Output:
	// 1 hours: no (0.10)
	// 2 hours: no (0.35)
	// 4 hours: yes (0.93)
	// hours: 1.58 ± 0.96
	// intercept: -3.78 ± 2.37
}
