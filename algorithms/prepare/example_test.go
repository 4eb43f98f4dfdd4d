package prepare_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type passenger struct {
	Age *float64
	Sex string
}

func Example() {
	age := func(v float64) *float64 { return &v }
	job := engine.Anonymous(func(b *engine.Builder) error {
		rows := operators.FromSlice(b, []passenger{{age(22), "male"}, {age(38), "female"}, {nil, "male"}, {age(30), "male"}})
		ages := prepare.Imputer{Columns: []string{"age"}, Strategy: prepare.Median}
		rows = ages.Apply(rows, ages.Fit(rows))
		sexes := prepare.StringIndexer{Columns: []string{"sex"}, Unknown: prepare.Keep}
		m := sexes.Fit(rows)
		operators.Print(sexes.Apply(rows, m), operators.PrintOptions{})
		engine.Collect(m, "sexes")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()

	m, err := prepare.ModelOf(result, "sexes")
	if err != nil {
		fmt.Println(err)
		return
	}
	layout := model.NewLayout("sex")
	step, err := m.Bind(layout)
	if err != nil {
		fmt.Println(err)
		return
	}
	row := layout.NewRow()
	row[0].SetText("female")
	fmt.Println(step(row), row[1].Int)
	// Output:
	// age  sex
	// ───  ───
	//  22    0
	//  38    1
	//  30    0
	//  30    0
	// (4 rows)
	// <nil> 1
}
