package parquet_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/parquet"
)

// One job writes rows to a file, and another job reads one column of the file.
func Example() {
	type city struct {
		Name   string
		People int64
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "cities.parquet")

	write := engine.Anonymous(func(b *engine.Builder) error {
		cities := operators.FromSlice(b, []city{{"Brno", 402739}, {"Vaduz", 5774}})
		parquet.Write(cities, path, parquet.WriteOptions{Compression: parquet.Zstd})
		return nil
	})
	read := engine.Anonymous(func(b *engine.Builder) error {
		names := parquet.Read(b, path, parquet.ReadOptions{Columns: []string{"name"}})
		engine.Collect(names, "names")
		return nil
	})
	written, err := engine.Run(context.Background(), write, struct{}{})
	if err != nil {
		log.Fatal(err)
	}
	written.Release()
	result, err := engine.Run(context.Background(), read, struct{}{})
	if err != nil {
		log.Fatal(err)
	}
	defer result.Release()
	names, err := engine.Rows[struct{ Name string }](result, "names")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(names)
	// Output: [{Brno} {Vaduz}]
}
