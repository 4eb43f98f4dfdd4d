package svm_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type plant struct {
	Height float64 `column:"height"`
	Width  float64 `column:"width"`
	Name   string  `column:"name"`
}

// Example classifies three kinds of plants by two lengths, and prints whether the relative
// duality gap of the training is small.
func Example() {
	plants := []plant{
		{1, 1, "moss"}, {2, 1, "moss"}, {1, 2, "moss"}, {2, 2, "moss"},
		{9, 1, "reed"}, {8, 2, "reed"}, {10, 2, "reed"}, {9, 3, "reed"},
		{4, 8, "shrub"}, {5, 9, "shrub"}, {6, 8, "shrub"}, {5, 10, "shrub"},
	}
	job := engine.Anonymous(func(b *engine.Builder) error {
		rows := operators.FromSlice(b, plants)
		engine.Collect(svm.TrainSVC(rows, svm.LinearSVC{FeatureCols: []string{"height", "width"}, LabelCol: "name"}), "model")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	m, err := svm.SVCModelOf(result, "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, x := range [][]float64{{1.5, 1.5}, {9, 2}, {5, 8}} {
		fmt.Println(x, m.Classes.Values[m.Predict(x)])
	}
	gap, _ := m.Summary.Measure(svm.RelativeDualityGap)
	fmt.Println(m.Summary.Reason, gap <= 1e-6)
	// Output:
	// [1.5 1.5] moss
	// [9 2] reed
	// [5 8] shrub
	// gap true
}
