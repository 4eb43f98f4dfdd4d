package bins_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// A queue opens binned rows about houses: areas have three bins, and colours are categories.
func Example() {
	type house struct {
		Area   *float64
		Colour string
		Price  float64
	}
	area := func(v float64) *float64 { return &v }
	job := engine.Define("houses", func(b *engine.Builder, _ struct{}) error {
		houses := operators.FromSlice(b, []house{
			{area(60), "red", 1}, {area(75), "blue", 2}, {nil, "red", 2}, {area(90), "white", 3}, {area(100), "red", 3}, {area(140), "blue", 4},
		})
		t, err := bins.Check("example", houses, bins.Columns{Features: []string{"area", "colour"}, Label: "price"}, bins.NumberLabel, bins.Options{MaxBins: 3})
		if err != nil {
			return err
		}
		lines := t.Init(comqueue.New(b, "look")).
			Do(func(ctx *comqueue.ComContext) error { _, err := t.Open(ctx); return err }).
			SetMaxIter(1).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]string, error) {
				data, err := t.Open(ctx)
				if err != nil {
					return nil, err
				}
				f := data.Layout.Features
				lines := []string{fmt.Sprintln(f[0].Name, f[0].Cuts), fmt.Sprintln(f[1].Name, f[1].Names)}
				for row := range data.Rows {
					lines = append(lines, fmt.Sprintln(data.Bin(row, 0), data.Bin(row, 1), data.Label[row]))
				}
				return lines, nil
			})).
			Exec()
		engine.Collect(lines, "lines")
		return nil
	})
	r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Release()
	lines, err := engine.Rows[string](r, "lines")
	if err != nil {
		fmt.Println(err)
	}
	for _, line := range lines {
		fmt.Print(line)
	}
	// Output:
	// area [67.5 95]
	// colour [blue red white]
	// 0 1 1
	// 1 0 2
	// 3 1 2
	// 1 2 3
	// 2 1 3
	// 2 0 4
}
