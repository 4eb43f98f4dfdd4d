package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Squares is a job that runs in the same way in this process and on a cluster.
var Squares = engine.Define("squares", func(b *engine.Builder, n int64) error {
	engine.Collect(operators.Map(operators.Range(b, 0, n), func(v int64) int64 { return v * v }), "squares")
	return nil
})

// A program that does not use Main calls WorkerMain first. Then it can run jobs on a cluster in
// the same way as in its own process. If a job fails on the cluster, the error says where.
func ExampleCluster() {
	engine.WorkerMain(Squares)

	result, err := engine.Run(context.Background(), Squares, 10,
		engine.Cluster("localhost:6123"), engine.Parallelism(6), engine.WaitTimeout(time.Minute))
	var failed *engine.JobError
	switch {
	case errors.As(err, &failed) && failed.Failure != nil:
		fmt.Println("failed on", failed.Failure.TaskManager, failed.Failure.Message)
		return
	case err != nil:
		fmt.Println(err)
		return
	}
	defer result.Release()
	squares, err := engine.Rows[int64](result, "squares")
	fmt.Println(squares, err)
}
