package model_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// The example trains a model and saves it to a file. It then loads the file without knowledge
// of the model's kind, and applies the model to single rows.
func Example() {
	type flat struct {
		Size, Rooms, Price float64
	}
	train := engine.Define("train", func(b *engine.Builder, _ struct{}) error {
		rows := operators.FromSlice(b, []flat{{30, 1, 110}, {50, 2, 170}, {70, 2, 210}, {90, 4, 290}})
		var stage model.Stage = linear.Params{FeatureCols: []string{"size", "rooms"}, LabelCol: "price"}
		engine.Collect(stage.Fit(rows), "model")
		return nil
	})
	folder, err := os.MkdirTemp("", "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "price.json")
	result, err := engine.Run(context.Background(), train, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	trained, err := linear.ModelOf(result, "model")
	if err == nil {
		err = model.Save(path, trained)
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	// The following part may be another program, which has the rows.
	file, err := model.ReadFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := catalog.Decode(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, in := range m.Inputs() {
		fmt.Println("reads", in.Column, in.Type)
	}
	layout := model.NewLayout("size", "rooms")
	step, err := catalog.Bind(m, layout)
	if err != nil {
		fmt.Println(err)
		return
	}
	price, err := layout.Find("prediction")
	if err != nil {
		fmt.Println(err)
		return
	}
	row := layout.NewRow()
	for _, size := range []float64{40, 60} {
		row[0].SetFloat(size)
		row[1].SetFloat(2)
		err := step(row)
		if errors.Is(err, model.ErrSkip) {
			continue // the model leaves the row out
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%v: %.0f\n", size, row[price].Float)
	}
	// Output:
	// reads size float64
	// reads rooms float64
	// 40: 150
	// 60: 190
}
