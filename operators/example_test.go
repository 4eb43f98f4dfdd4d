package operators_test

import (
	"context"
	"fmt"
	"log"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type Measurement struct {
	City    string
	Celsius float64
}

var measurements = []Measurement{
	{"Oslo", 4}, {"Cairo", 31}, {"Lima", 19}, {"Oslo", -2}, {"Cairo", 28}, {"Delhi", 33},
}

// run runs a job that ends in Print.
func run(build func(b *engine.Builder) *engine.Dataset) {
	job := engine.Anonymous(func(b *engine.Builder) error {
		operators.Print(build(b), operators.PrintOptions{})
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		log.Fatal(err)
	}
	result.Release()
}

func ExampleMap() {
	type Converted struct {
		City       string
		Fahrenheit float64
	}
	job := engine.Anonymous(func(b *engine.Builder) error {
		rows := operators.FromSlice(b, measurements)
		converted := operators.Map(rows, func(m Measurement) Converted {
			return Converted{m.City, float64(m.Celsius*9/5) + 32}
		})
		engine.Collect(converted, "converted")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		log.Fatal(err)
	}
	defer result.Release()
	rows, err := engine.Rows[Converted](result, "converted")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows[0], rows[1])
	// Output: {Oslo 39.2} {Cairo 87.8}
}

func ExampleFilter() {
	// The struct has only the column that the function reads. All columns are kept.
	type temperature struct{ Celsius float64 }
	run(func(b *engine.Builder) *engine.Dataset {
		rows := operators.FromSlice(b, measurements)
		return operators.Filter(rows, func(t temperature) bool { return t.Celsius > 20 })
	})
	// Output:
	// city   celsius
	// ─────  ───────
	// Cairo       31
	// Cairo       28
	// Delhi       33
	// (3 rows)
}

func ExampleSplit() {
	run(func(b *engine.Builder) *engine.Dataset {
		parts := operators.Split(operators.Range(b, 0, 100_000), 0.8, 0.2)
		train, test := parts[0], parts[1]
		return operators.Union(operators.Count(train), operators.Count(test))
	})
	// Output:
	// count
	// ─────
	// 79838
	// 20162
	// (2 rows)
}

func ExampleZipWithIndex() {
	run(func(b *engine.Builder) *engine.Dataset {
		return operators.ZipWithIndex(operators.FromSlice(b, measurements), "row")
	})
	// Output:
	// city   celsius  row
	// ─────  ───────  ───
	// Oslo         4    0
	// Cairo       31    1
	// Lima        19    2
	// Oslo        -2    3
	// Cairo       28    4
	// Delhi       33    5
	// (6 rows)
}
