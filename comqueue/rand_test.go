package comqueue_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// drawing adds a queue whose stages draw random numbers, one per shard and stage, all for the
// same purpose. The stages are outside of loops and in inner loops, one of which is nested, and
// the numbers are collected by reductions of numbers, objects and sparse vectors. The rows of
// the queue are all drawn numbers, in an order that does not depend on parallelism.
func drawing(b *engine.Builder, name string, supersteps int) *engine.Dataset {
	const places = 12 // number of places in a superstep at which stages draw; see below
	shards := b.Shards()
	sum := shared.Scratch[[]float64]("sum")
	merged := shared.Replicated("merged", shared.Msgpack[map[int]float64]())
	parts := shared.PerShard("parts", shared.Msgpack[comqueue.SparseVector[float64]]())
	sparse := shared.Scratch[comqueue.SparseVector[float64]]("sparse")
	all := shared.Scratch[[]float64]("all")
	rounds := shared.Scratch[int]("rounds")
	at := func(ctx *comqueue.ComContext) int { return rounds.Get(ctx) % places }
	next := do(func(ctx *comqueue.ComContext) { rounds.Put(ctx, rounds.Get(ctx)+1) })
	draw := func(ctx *comqueue.ComContext, shard int) float64 {
		r := ctx.Rand("draw", shard)
		return r.Float64()
	}
	// Reductions of three kinds collect the numbers that the shards draw at a place of the
	// superstep.
	inBuffer := []comqueue.Stage{
		comqueue.ForEachShard(sum, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			out[shard] = draw(ctx, shard)
			return nil
		}),
		comqueue.AllReduce(sum),
		do(func(ctx *comqueue.ComContext) {
			copy(all.Get(ctx)[((ctx.StepNo()-1)*places+at(ctx))*shards:], sum.Get(ctx))
		}), next,
	}
	asObject := []comqueue.Stage{
		comqueue.Named("draw", comqueue.Do(func(ctx *comqueue.ComContext) error {
			own := map[int]float64{}
			for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
				own[shard] = draw(ctx, shard)
			}
			merged.Put(ctx, own)
			return nil
		})),
		comqueue.AllReduceObject(merged, func(left, right map[int]float64) map[int]float64 {
			for shard, v := range right {
				left[shard] = v
			}
			return left
		}),
		do(func(ctx *comqueue.ComContext) {
			for shard, v := range merged.Get(ctx) {
				all.Get(ctx)[((ctx.StepNo()-1)*places+at(ctx))*shards+shard] = v
			}
		}), next,
	}
	asSparse := []comqueue.Stage{
		comqueue.Named("draw", comqueue.Do(func(ctx *comqueue.ComContext) error {
			for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
				parts.Put(ctx, shard, comqueue.SparseVector[float64]{Length: shards, Index: []int32{int32(shard)}, Value: []float64{draw(ctx, shard)}})
			}
			return nil
		})),
		comqueue.AllReduceShardSparse(parts, sparse),
		do(func(ctx *comqueue.ComContext) {
			copy(all.Get(ctx)[((ctx.StepNo()-1)*places+at(ctx))*shards:], expand(sparse.Get(ctx)))
		}), next,
	}
	stages := []comqueue.Stage{do(func(ctx *comqueue.ComContext) {
		if rounds.Put(ctx, 0); ctx.StepNo() == 1 {
			sum.Put(ctx, make([]float64, shards))
			all.Put(ctx, make([]float64, supersteps*places*shards))
		}
	})}
	stages = append(stages, inBuffer...) // place 0: outside all loops
	// Places 1 to 8: a loop of two rounds, each with a reduction of objects and a nested loop
	// of three rounds.
	inner := comqueue.While(3, func(*comqueue.ComContext) (bool, error) { return true, nil }, asSparse...)
	stages = append(stages, comqueue.Repeat(2, nil, append(asObject, inner)...))
	// Places 9 to 11: a loop of three rounds.
	stages = append(stages, comqueue.Repeat(3, nil, inBuffer...))
	q := comqueue.New(b, name)
	for _, s := range stages {
		q = q.Add(s)
	}
	return q.SetMaxIter(supersteps).CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) (out []row, err error) {
		for _, v := range all.Get(ctx) {
			out = append(out, row{v})
		}
		return out, nil
	})).Exec()
}

// TestDrawsOfQueues requires that queues draw the same numbers at every parallelism, and that
// no number is drawn twice, in any queue of the job, superstep, loop or round.
func TestDrawsOfQueues(t *testing.T) {
	const supersteps, shards = 2, 8
	seen := map[float64]string{}
	for _, name := range []string{"first", "second"} {
		var rows []row
		for _, p := range []int{1, 3, 8} {
			got, _, err := run(t, func(b *engine.Builder) *engine.Dataset {
				return drawing(b, name, supersteps)
			}, engine.Shards(shards), engine.Seed(5), engine.Parallelism(p))
			require.NoError(t, err)
			require.Len(t, got, supersteps*12*shards)
			if rows == nil {
				rows = got
			}
			require.Equal(t, bitsOf(rows), bitsOf(got), "%d subtasks", p)
		}
		for i, r := range rows {
			here := fmt.Sprintf("queue %s, superstep %d, place %d, shard %d", name, i/(12*shards)+1, i/shards%12, i%shards)
			require.Empty(t, seen[r.Value], "%s draws %v, which was drawn before", here, r.Value)
			seen[r.Value] = here
		}
	}
}
