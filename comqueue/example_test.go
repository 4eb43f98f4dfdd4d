package comqueue_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// The queue computes the mean of a column by Newton's method on the squared error. One step is
// enough, after which the criterion stops the queue.
func Example() {
	type estimate struct{ Mean float64 }
	var (
		rows     = comqueue.PartitionedRows("rows")
		mean     = shared.Replicated("mean", shared.Float64())
		gradient = shared.Scratch[[]float64]("gradient") // sum of errors, number of rows
	)
	job := engine.Define("mean", func(b *engine.Builder, n int) error {
		model := comqueue.New(b, "mean").
			InitWithPartitionedData(rows, dataset(b, n, func(i int) float64 { return float64(i) })).
			Begin(func(ctx *comqueue.ComContext) error {
				mean.Put(ctx, 0)
				return nil
			}).
			Init(func(ctx *comqueue.ComContext) error {
				gradient.Put(ctx, make([]float64, 2))
				return nil
			}).
			Add(comqueue.ForEachShard(gradient, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				for _, v := range rows.Get(ctx, shard).Floats("value") {
					out[0] += v - mean.Get(ctx)
					out[1]++
				}
				return nil
			})).
			Add(comqueue.AllReduce(gradient)).
			Do(func(ctx *comqueue.ComContext) error {
				g := gradient.Get(ctx)
				mean.Put(ctx, mean.Get(ctx)+g[0]/g[1])
				return nil
			}).
			SetCompareCriterionOfNode0(func(ctx *comqueue.ComContext) (bool, error) {
				return gradient.Get(ctx)[0] == 0, nil
			}).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]estimate, error) {
				return []estimate{{mean.Get(ctx)}}, nil
			})).
			SetMaxIter(10).
			Exec()
		engine.Collect(model, "model")
		return nil
	})
	result, err := engine.Run(context.Background(), job, 101, engine.Parallelism(3))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	model, err := engine.Rows[estimate](result, "model")
	fmt.Println(model, err, result.Report.Queues[0].Supersteps, "supersteps")
	// Output: [{50}] <nil> 2 supersteps
}
