package batch_test

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Rows are written as structs, sorted as columns, and read as structs.
func Example() {
	type flower struct {
		SepalLength float64
		Species     string
		Features    []float64 `column:"features,dim=2"`
	}
	codec, err := batch.NewCodec[flower]()
	if err != nil {
		fmt.Println(err)
		return
	}
	mem := memory.NewGoAllocator()
	rec, err := codec.Record(mem, []flower{
		{7.0, "versicolor", []float64{4.7, 1.4}},
		{5.1, "setosa", []float64{1.4, 0.2}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rec.Release()

	order, err := batch.SortIndices(rec, []batch.SortKey{{Column: 0}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	sorted, err := batch.Take(mem, rec, order)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sorted.Release()

	reader, err := codec.Bind(sorted.Schema())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := reader.Reset(sorted); err != nil {
		fmt.Println(err)
		return
	}
	var f flower
	for i := range reader.Len() {
		if err := reader.Read(i, &f); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(f.Species, f.SepalLength, f.Features)
	}
	for _, c := range batch.Columns(codec.Schema()) {
		fmt.Println(c)
	}
	// Output:
	// setosa 5.1 [1.4 0.2]
	// versicolor 7 [4.7 1.4]
	// sepal_length float64
	// species utf8
	// features vector[2]
}

// DenseView gives numeric code a vector column as one row-major block.
func ExampleDenseView() {
	points := batch.NewVectorArray(memory.NewGoAllocator(), []float64{1, 2, 3, 4, 5, 6}, 3)
	defer points.Release()
	data, dim, ok := batch.DenseView(points)
	fmt.Println(data, dim, ok)
	// Output:
	// [1 2 3 4 5 6] 3 true
}
