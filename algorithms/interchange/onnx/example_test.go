package onnx_test

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/interchange/onnx"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/model"
)

// Example writes a model for other runtimes and reads it back.
func Example() {
	m := &linear.Model{}
	m.Reads = []model.Input{{Column: "rooms", Type: "int64"}, {Column: "area", Type: "float64"}}
	m.Dim, m.Coefficients, m.Intercepts = 2, [][]float64{{10, 2.5}}, []float64{20}

	data, err := onnx.Export(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	back, err := onnx.Import(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(back.Kind(), back.(*linear.Model).Predict([]float64{3, 70}))
	// Output: linear 225
}
