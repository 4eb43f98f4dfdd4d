package evaluate_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Example runs a job that measures scores.
func Example() {
	type row struct {
		Spam  bool
		Score float64
	}
	job := engine.Define("quality", func(b *engine.Builder, _ struct{}) error {
		rows := operators.FromSlice(b, []row{{true, 0.9}, {false, 0.7}, {true, 0.6}, {false, 0.2}})
		report := evaluate.Binary(rows, evaluate.BinaryOptions{LabelCol: "spam", ScoreCol: "score"})
		engine.Collect(report, "report")
		engine.Collect(evaluate.Curve(report), "curve")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	r, err := evaluate.ReportOf[evaluate.BinaryReport](result, "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("AUC", r.AUC, "accuracy", r.Accuracy)
	curve, err := engine.Rows[evaluate.CurvePoint](result, "curve")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range curve {
		fmt.Println(p.Score, p.FPR, p.TPR)
	}
	// Output:
	// AUC 0.75 accuracy 0.75
	// +Inf 0 0
	// 0.9 0 0.5
	// 0.7 0.5 0.5
	// 0.6 0.5 1
	// 0.2 1 1
}

// This example measures slices without a job.
func ExampleMeasureMulticlass() {
	truth := []string{"cat", "dog", "cat", "bird"}
	predicted := []string{"cat", "cat", "cat", "bird"}
	r, err := evaluate.MeasureMulticlass(truth, predicted, nil, nil, evaluate.MulticlassOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Accuracy, r.Classes, r.Confusion)
	// Output: 0.75 [bird cat dog] [[1 0 0] [0 2 0] [0 1 0]]
}
