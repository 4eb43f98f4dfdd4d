package engine_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// A program that does not use Main first says which jobs a cluster may run in it. Here
// WorkerMain returns, because this process was not started as a worker.
func ExampleWorkerMain() {
	type args struct{ N int64 }
	doubled := engine.Define("doubled", func(b *engine.Builder, a args) error {
		numbers := operators.Range(b, 0, a.N)
		engine.Collect(operators.Map(numbers, func(n int64) int64 { return 2 * n }), "doubled")
		return nil
	})
	engine.WorkerMain(doubled)

	result, err := engine.Run(context.Background(), doubled, args{N: 3}) // with engine.Cluster("host:6123") it would run on a cluster
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	rows, err := engine.Rows[int64](result, "doubled")
	fmt.Println(rows, err)
	// Output: [0 2 4] <nil>
}
