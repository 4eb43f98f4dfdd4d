package pmml_test

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/interchange/pmml"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/model"
)

// Example writes a model for other programs and reads it back.
func Example() {
	m := &linear.Model{}
	m.Reads = []model.Input{{Column: "rooms", Type: "int64"}, {Column: "area", Type: "float64"}}
	m.Dim, m.Coefficients, m.Intercepts = 2, [][]float64{{10, 2.5}}, []float64{20}

	data, err := pmml.Export(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range strings.Split(string(data), "\n") {
		if strings.Contains(line, "NumericPredictor") {
			fmt.Println(strings.TrimSpace(line))
		}
	}
	back, err := pmml.Import(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(back.Kind(), back.(*linear.Model).Predict([]float64{3, 70}))
	// Output:
	// <NumericPredictor name="rooms" coefficient="10"/>
	// <NumericPredictor name="area" coefficient="2.5"/>
	// linear 225
}
