package linear_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type flat struct {
	Area  float64 `column:"area"`
	Rooms int64   `column:"rooms"`
	Price float64 `column:"price"`
}

// Example trains a model of the price of flats by area and number of rooms.
func Example() {
	flats := []flat{{40, 1, 101}, {55, 2, 138}, {60, 2, 151}, {70, 3, 172}, {75, 2, 190}, {90, 4, 217}, {110, 4, 269}}
	job := engine.Anonymous(func(b *engine.Builder) error {
		rows := operators.FromSlice(b, flats)
		engine.Collect(linear.Train(rows, linear.Params{FeatureCols: []string{"area", "rooms"}, LabelCol: "price"}), "model")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	m, err := linear.ModelOf(result, "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("80 square metres, 3 rooms: %.0f\n", m.Predict([]float64{80, 3}))
	for _, t := range m.Summary.Inference.Terms {
		fmt.Printf("%s: %.2f ± %.2f\n", t.Name, t.Estimate, t.StdError)
	}
	r2, _ := m.Summary.Measure(linear.RSquared)
	fmt.Printf("R² = %.4f\n", r2)
	// Output:
	// 80 square metres, 3 rooms: 197
	// area: 2.60 ± 0.07
	// rooms: -5.08 ± 1.39
	// intercept: 4.39 ± 2.23
	// R² = 0.9995
}
