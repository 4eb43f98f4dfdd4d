package columnar_test

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine/columnar"
)

// NewBatch makes a batch from slices, and Get and GetNullable return its columns as slices.
func Example() {
	schema, err := columnar.NewSchema(
		columnar.Column{Name: "shop", Type: "utf8"},
		columnar.Column{Name: "price", Type: "float64", Nullable: true},
		columnar.Column{Name: "at", Type: "vector[2]"})
	if err != nil {
		fmt.Println(err)
		return
	}
	prices := []float64{2.5, 0, 4}
	rows, err := columnar.NewBatch(nil, schema,
		[]string{"a", "b", "a"},
		columnar.WithNulls(prices, func(i int) bool { return i == 1 }),
		columnar.Matrix{Rows: 3, Cols: 2, Data: []float64{1, 2, 3, 4, 5, 6}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rows.Release()

	price, nulls, err := columnar.GetNullable[[]float64](rows, "price")
	if err != nil {
		fmt.Println(err)
		return
	}
	shop, err := columnar.Get[columnar.Texts](rows, "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range rows.Len() {
		if nulls.At(i) {
			fmt.Println(shop.At(i), "has no price")
			continue
		}
		fmt.Println(shop.At(i), price[i])
	}
	fmt.Println(rows.Schema())
	_, err = columnar.Get[[]float64](rows, "price")
	fmt.Println(err)
	// Output:
	// a 2.5
	// b has no price
	// a 4
	// shop utf8, price float64 null, at vector[2]
	// column "price" has 1 nulls, for which Get has no room: GetNullable has
}
