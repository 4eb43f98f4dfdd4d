package tree_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// fares is an ensemble of two small trees with the features age and port.
var fares = &tree.Ensemble{
	Features:   []string{"age", "port"},
	Categories: [][]string{nil, {"Cherbourg", "Queenstown", "Southampton"}},
	Outputs:    1, Base: []float64{0.5},
	Trees: []tree.Tree{{
		Nodes: []tree.Node{
			{Feature: 0, Left: 1, Right: 2, Threshold: 15, Gain: 4, Cover: 10},
			{Value: 1, Cover: 2},
			{Value: -0.25, Cover: 8},
		},
		Weight: 1,
	}, {
		Nodes: []tree.Node{
			{Feature: 1, Left: 1, Right: 2, Flags: tree.Categorical | tree.DefaultLeft, SetWords: 1, Gain: 1, Cover: 10},
			{Value: 0.5, Cover: 5},
			{Value: -0.5, Cover: 5},
		},
		Sets: []uint32{1<<0 | 1<<1}, Weight: 1,
	}},
}

func Example() {
	if err := fares.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	scorer := fares.Scorer()
	out := make([]float64, 1)
	for _, row := range [][]float64{{9, 2}, {40, 0}, {math.NaN(), math.NaN()}} {
		scorer.Scores(row, out)
		fmt.Println(row, out[0])
	}

	explainer, err := fares.Explainer(tree.ExplainOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	values := make([]float64, 3)
	explainer.Values([]float64{9, 2}, values)
	fmt.Println("age, port and bias of the first:", values)
	for _, i := range fares.Importances() {
		fmt.Println(i.Feature, i.Splits, i.Gain())
	}
	// Output:
	// [9 2] 1
	// [40 0] 0.75
	// [NaN NaN] 0.75
	// age, port and bias of the first: [1 -0.5 0.5]
	// age 1 4
	// port 1 1
}

func ExampleEnsemble_WriteText() {
	if err := fares.WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// tree 0
	// 0: age < 15, missing right, gain 4, cover 10
	//   1: leaf 1, cover 2
	//   2: leaf -0.25, cover 8
	// tree 1
	// 0: port in {Cherbourg, Queenstown}, missing left, gain 1, cover 10
	//   1: leaf 0.5, cover 5
	//   2: leaf -0.5, cover 5
}

func ExampleEnsemble_MarshalJSON() {
	text, err := json.Marshal(fares.First(1))
	fmt.Println(string(text), err)
	// Output:
	// {"features":["age","port"],"categories":[{"feature":1,"names":["Cherbourg","Queenstown","Southampton"]}],"outputs":1,"base":[0.5],"trees":[{"feature":[0,0,0],"left":[1,0,0],"threshold":[15,0,0],"value":[0,1,-0.25],"gain":[4,0,0],"cover":[10,2,8]}]} <nil>
}
