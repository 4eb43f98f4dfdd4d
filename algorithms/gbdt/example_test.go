package gbdt_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Example trains a model of the price of a ride from its length and the kind of vehicle.
func Example() {
	type ride struct {
		Km    float64
		Car   string
		Price float64
	}
	job := engine.Define("rides", func(b *engine.Builder, _ struct{}) error {
		var rides []ride
		for i := range 200 {
			km := float64(1 + i%10)
			rides = append(rides, ride{km, "taxi", 4 + 2*km}, ride{km, "bus", 3})
		}
		model := gbdt.Train(operators.FromSlice(b, rides), gbdt.Params{
			FeatureCols: []string{"km", "car"}, LabelCol: "price", NumTrees: 60, LearningRate: 0.3,
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
	m, err := gbdt.ModelOf(result, "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, car := range []string{"taxi", "bus"} {
		fmt.Printf("3 km by %s: %.2f\n", car, m.Predict([]float64{3, m.Code(1, car)}))
	}
	// Output:
	// 3 km by taxi: 10.00
	// 3 km by bus: 3.00
}
