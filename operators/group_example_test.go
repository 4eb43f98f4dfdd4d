package operators_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type ride struct {
	City  string
	Km    float64
	Price *float64
}

func price(v float64) *float64 { return &v }

var rides = []ride{
	{"Lyon", 2.5, price(9)},
	{"Bern", 4, price(21)},
	{"Lyon", 1.5, nil},
	{"Bern", 10, price(44)},
	{"Lyon", 6, price(16)},
}

// show runs a job of one dataset and prints its rows.
func show[T any](build func(b *engine.Builder) *engine.Dataset) {
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(build(b), "out")
		return nil
	}), struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	rows, err := engine.Rows[T](result, "out")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range rows {
		fmt.Printf("%v\n", r)
	}
}

func ExampleGroupBy() {
	type summary struct {
		City  string
		Rides int64
		Km    float64 `column:"sum_km"`
		Mean  float64 `column:"mean_price"`
	}
	show[summary](func(b *engine.Builder) *engine.Dataset {
		byCity := operators.GroupBy(operators.FromSlice(b, rides), "city").Aggregate(
			operators.CountRows().As("rides"),
			operators.SumOf("km"),
			operators.MeanOf("price"), // the trip without a price is ignored
		)
		return operators.Sort(byCity, operators.Asc("city"))
	})
	// Output:
	// {Bern 2 14 32.5}
	// {Lyon 3 10 12.5}
}

func ExampleAggregate() {
	type extremes struct {
		Rows     int64 `column:"count"`
		Shortest float64
		Longest  float64
	}
	show[extremes](func(b *engine.Builder) *engine.Dataset {
		return operators.Aggregate(operators.FromSlice(b, rides),
			operators.CountRows(),
			operators.MinOf("km").As("shortest"),
			operators.MaxOf("km").As("longest"))
	})
	// Output:
	// {5 1.5 10}
}

func ExampleFoldGroups() {
	type city struct{ City string }
	type trip struct{ Km float64 }
	type trips struct{ Text string }
	show[trips](func(b *engine.Builder) *engine.Dataset {
		all := operators.FoldGroups(operators.GroupBy(operators.FromSlice(b, rides), "city"),
			func() []float64 { return nil },
			func(seen []float64, t trip) []float64 { return append(seen, t.Km) }, // in the order of rows
			func(c city, seen []float64) trips { return trips{fmt.Sprint(c.City, " ", seen)} })
		return operators.Sort(all, operators.Asc("text"))
	})
	// Output:
	// {Bern [4 10]}
	// {Lyon [2.5 1.5 6]}
}

func ExampleReduce() {
	longer := func(x, y ride) ride {
		if y.Km > x.Km {
			return y
		}
		return x
	}
	type named struct{ City string }
	show[named](func(b *engine.Builder) *engine.Dataset {
		return operators.Reduce(operators.FromSlice(b, rides), longer)
	})
	// Output:
	// {Bern}
}

func ExampleSort() {
	type line struct {
		City string
		Km   float64
	}
	show[line](func(b *engine.Builder) *engine.Dataset {
		return operators.Sort(operators.FromSlice(b, rides), operators.Asc("city"), operators.Desc("km"))
	})
	// Output:
	// {Bern 10}
	// {Bern 4}
	// {Lyon 6}
	// {Lyon 2.5}
	// {Lyon 1.5}
}
