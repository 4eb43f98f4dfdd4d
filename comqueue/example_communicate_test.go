package comqueue_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// show runs a queue of one superstep over the numbers 0 to 99, on 4 subtasks, and prints the
// rows that its subtask 0 emits.
func show(stages []comqueue.Stage, rows func(ctx *comqueue.ComContext) ([]row, error)) {
	job := engine.Define("example", func(b *engine.Builder, _ struct{}) error {
		q := comqueue.New(b, "example").
			InitWithPartitionedData(data, dataset(b, 100, func(i int) float64 { return float64(i) }))
		for _, s := range stages {
			q.Add(s)
		}
		engine.Collect(q.CloseOnNode0(comqueue.Output(rows)).SetMaxIter(1).Exec(), "rows")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(4), engine.Shards(16))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	fmt.Println(engine.Rows[row](result, "rows"))
}

// Each subtask finds the largest of its numbers, and every subtask gets the list of these
// maxima.
func ExampleAllGather() {
	largest := shared.Scratch[[]float64]("largest")
	all := shared.Replicated("all", shared.Float64s())
	show([]comqueue.Stage{
		comqueue.Do(func(ctx *comqueue.ComContext) error {
			best := []float64{0}
			largest.Put(ctx, best)
			return ctx.ForShards(func(shard int) error {
				for _, v := range data.Get(ctx, shard).Floats("value") {
					best[0] = max(best[0], v)
				}
				return nil
			})
		}),
		comqueue.AllGather(largest, all),
	}, func(ctx *comqueue.ComContext) (rows []row, err error) {
		for _, v := range all.Get(ctx) {
			rows = append(rows, row{v})
		}
		return rows, nil
	})
	// Output: [{27} {51} {75} {99}] <nil>
}

// Each subtask processes its own part of a histogram: it counts the bins of the part that are
// not empty, and the counts are added up.
func ExampleReduceScatter() {
	histogram, own := shared.Scratch[[]float64]("histogram"), shared.Scratch[[]float64]("own bins")
	filled := shared.Scratch[[]float64]("filled")
	show([]comqueue.Stage{
		comqueue.Do(func(ctx *comqueue.ComContext) error {
			histogram.Put(ctx, make([]float64, 32))
			return nil
		}),
		comqueue.ForEachShard(histogram, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			for _, v := range data.Get(ctx, shard).Floats("value") {
				out[int(v)/7]++
			}
			return nil
		}),
		comqueue.ReduceScatter(histogram, own),
		comqueue.Do(func(ctx *comqueue.ComContext) error {
			n := 0.0
			for _, count := range own.Get(ctx) {
				if count > 0 {
					n++
				}
			}
			filled.Put(ctx, []float64{n})
			return nil
		}),
		comqueue.AllReduce(filled),
	}, func(ctx *comqueue.ComContext) ([]row, error) {
		return []row{{filled.Get(ctx)[0]}}, nil
	})
	// Output: [{15}] <nil>
}

// Objects of any type, one per shard, are merged by a function. Here they count rows by last
// digit.
func ExampleAllReduceShardObjects() {
	type tally = map[int]int
	perShard := shared.PerShard("digits of shards", shared.Msgpack[tally]())
	digits := shared.Replicated("digits", shared.Msgpack[tally]())
	show([]comqueue.Stage{
		comqueue.Do(func(ctx *comqueue.ComContext) error {
			return ctx.ForShards(func(shard int) error {
				t := tally{}
				for _, v := range data.Get(ctx, shard).Floats("value") {
					t[int(v)%10]++
				}
				perShard.Put(ctx, shard, t)
				return nil
			})
		}),
		comqueue.AllReduceShardObjects(perShard, digits, func(left, right tally) tally {
			for digit, n := range right {
				left[digit] += n
			}
			return left
		}),
	}, func(ctx *comqueue.ComContext) ([]row, error) {
		return []row{{float64(digits.Get(ctx)[7])}}, nil
	})
	// Output: [{10}] <nil>
}

// Sparse updates of a long vector, one per shard, are added up.
func ExampleAllReduceShardSparse() {
	codec := shared.Msgpack[comqueue.SparseVector[float64]]()
	updates, update := shared.PerShard("updates", codec), shared.Replicated("update", codec)
	show([]comqueue.Stage{
		comqueue.Do(func(ctx *comqueue.ComContext) error {
			return ctx.ForShards(func(shard int) error {
				v := comqueue.SparseVector[float64]{Length: 1000000, Index: []int32{7, int32(1000 + shard)}, Value: []float64{1, 0.5}}
				updates.Put(ctx, shard, v)
				return nil
			})
		}),
		comqueue.AllReduceShardSparse(updates, update),
	}, func(ctx *comqueue.ComContext) ([]row, error) {
		sum := update.Get(ctx)
		return []row{{float64(len(sum.Index))}, {sum.Value[0]}}, nil
	})
	// Output: [{17} {16}] <nil>
}

// The user chooses the algorithm of a reduction. Without the option, the stage chooses an
// algorithm and the result never depends on parallelism. With this algorithm it may, and the
// plan says so.
func ExampleAlgorithm() {
	sum := shared.Scratch[[]float64]("sum")
	show([]comqueue.Stage{
		comqueue.Do(func(ctx *comqueue.ComContext) error { sum.Put(ctx, make([]float64, 1)); return nil }),
		comqueue.ForEachShard(sum, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			for _, v := range data.Get(ctx, shard).Floats("value") {
				out[0] += v
			}
			return nil
		}),
		comqueue.AllReduce(sum, comqueue.Algorithm("torus:2x2")),
	}, func(ctx *comqueue.ComContext) ([]row, error) {
		return []row{{sum.Get(ctx)[0]}}, nil
	})
	// Output: [{4950}] <nil>
}
