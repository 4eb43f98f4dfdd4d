package forest_test

import (
	"context"
	"fmt"
	"os"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type fruit struct {
	Weight, Length float64
	Colour         string
	Name           string
}

var fruits = []fruit{
	{120, 18, "yellow", "banana"}, {110, 17, "yellow", "banana"}, {130, 20, "green", "banana"}, {125, 19, "yellow", "banana"},
	{150, 7, "red", "apple"}, {160, 8, "green", "apple"}, {140, 7.5, "red", "apple"}, {155, 8, "red", "apple"},
	{90, 7, "yellow", "lemon"}, {100, 8, "yellow", "lemon"}, {95, 7.5, "yellow", "lemon"}, {105, 8, "green", "lemon"},
}

// learn trains on the rows of fruits and returns the model.
func learn(p forest.Params) (*forest.Model, error) {
	job := engine.Define("fruit", func(b *engine.Builder, _ struct{}) error {
		engine.Collect(forest.Train(operators.FromSlice(b, fruits), p), "model")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		return nil, err
	}
	defer result.Release()
	return forest.ModelOf(result, "model")
}

// Example trains a forest that classifies fruits. Colours are categories.
func Example() {
	m, err := learn(forest.Params{
		FeatureCols: []string{"weight", "length", "colour"}, LabelCol: "name", Task: forest.Classification, Seed: 1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range []fruit{{122, 18.5, "yellow", ""}, {152, 7.2, "red", ""}, {97, 7.2, "yellow", ""}} {
		x := []float64{f.Weight, f.Length, m.Code(2, f.Colour)}
		fmt.Println(f.Weight, f.Length, f.Colour, "is a kind of", m.Classes.Values[int(m.Predict(x))])
	}
	// Output:
	// 122 18.5 yellow is a kind of banana
	// 152 7.2 red is a kind of apple
	// 97 7.2 yellow is a kind of lemon
}

// This example prints a single tree as text. Trees.WriteSVG draws it.
func Example_singleTree() {
	m, err := learn(forest.Params{
		FeatureCols: []string{"weight", "length", "colour"}, LabelCol: "name", Task: forest.Classification, Method: forest.SingleTree,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Classes.Values)
	if err := m.Trees.WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [apple banana lemon]
	// tree 0
	// 0: weight < 107.5, missing right, gain 4, cover 12, count 12
	//   1: leaf 0 0 1, cover 4, count 4
	//   2: weight < 135, missing left, gain 4, cover 8, count 8
	//     3: leaf 0 1 0, cover 4, count 4
	//     4: leaf 1 0 0, cover 4, count 4
}
