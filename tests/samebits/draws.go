package main

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// userDraws makes random draws in all kinds of user code, in two queues that use the same
// purposes: in compute functions with and without a shard, in ForEachShard, in inner loops, for
// sums of buffers, objects and sparse vectors, in stopping criteria, and in the function that
// closes the queue. It also samples and splits rows repeatedly.
func userDraws(b *engine.Builder, e *env) error {
	rows := operators.Generate(b, rowsPerJob, e.makeReading)
	for _, name := range []string{"first", "second"} {
		engine.Collect(e.drawingQueue(b, name, rows), name)
	}
	train := operators.Split(operators.Sample(rows, 0.5, operators.SampleOptions{}), 3, 1)[0]
	engine.Collect(operators.SplitWith(train, operators.SplitOptions{Seed: 4}, 1, 2)[1], "nested")
	return nil
}

func (e *env) drawingQueue(b *engine.Builder, name string, rows *engine.Dataset) *engine.Dataset {
	var (
		data    = comqueue.PartitionedRows("data")
		sums    = shared.Scratch[[]float64]("sums")
		state   = shared.Replicated("state", shared.Msgpack[[]float64]())
		drawn   = shared.PerShard("drawn", shared.Msgpack[[]float64]())
		objects = shared.Scratch[[]float64]("objects")
		parts   = shared.PerShard("parts", shared.Msgpack[comqueue.SparseVector[float64]]())
		sparse  = shared.Scratch[comqueue.SparseVector[float64]]("sparse")
	)
	const length = 64
	// byShards draws numbers with very different magnitudes for every shard of the subtask.
	byShards := func(ctx *comqueue.ComContext) error {
		for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
			e.pause(9, shard)
			r := ctx.Rand("shards", shard)
			v := comqueue.SparseVector[float64]{Length: length}
			for i := r.IntN(8); i < length; i += 1 + r.IntN(16) {
				v.Index, v.Value = append(v.Index, int32(i)), append(v.Value, wide(&r))
			}
			drawn.Put(ctx, shard, []float64{wide(&r), wide(&r)})
			parts.Put(ctx, shard, v)
		}
		return nil
	}
	byRow := comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
		r := ctx.Rand("rows", shard)
		for _, v := range data.Get(ctx, shard).Floats("value") {
			out[r.IntN(length)] += v * r.Float64()
		}
		return nil
	})
	// keep folds the draws, and a draw that belongs to no shard, into the state.
	keep := func(ctx *comqueue.ComContext) error {
		r, s := ctx.Rand("state", -1), state.Get(ctx)
		for i, v := range sums.Get(ctx) {
			s[i] = s[i]/2 + v*r.Float64()
		}
		for _, v := range objects.Get(ctx) {
			s[r.IntN(length)] += v
		}
		for i, at := range sparse.Get(ctx).Index {
			s[at] += sparse.Get(ctx).Value[i] * r.NormFloat64()
		}
		state.Put(ctx, s)
		return nil
	}
	return comqueue.New(b, name).
		InitWithPartitionedData(data, rows).
		Begin(func(ctx *comqueue.ComContext) error {
			state.Put(ctx, make([]float64, length))
			return nil
		}).
		Init(func(ctx *comqueue.ComContext) error {
			sums.Put(ctx, make([]float64, length))
			return nil
		}).
		Add(comqueue.Named("draw", comqueue.Do(byShards))).
		Add(comqueue.AllReduceShardObjects(drawn, objects, func(left, right []float64) []float64 {
			return []float64{left[0] + right[0], max(left[1], right[1])}
		})).
		Add(comqueue.AllReduceShardSparse(parts, sparse)).
		Add(comqueue.Repeat(3, func(ctx *comqueue.ComContext) (bool, error) {
			r := ctx.Rand("until", -1)
			return r.Float64() < 0.25, nil
		}, byRow, comqueue.AllReduce(sums),
			comqueue.While(2, func(ctx *comqueue.ComContext) (bool, error) {
				r := ctx.Rand("while", -1)
				return r.Float64() < 0.75, nil
			}, comqueue.Named("draw", comqueue.Do(byShards)), comqueue.AllReduceShardSparse(parts, sparse), comqueue.Named("keep", comqueue.Do(keep))),
			comqueue.Named("keep", comqueue.Do(keep)))).
		SetCompareCriterionOfNode0(func(ctx *comqueue.ComContext) (bool, error) {
			r := ctx.Rand("criterion", -1)
			ctx.Report("draw", r.Float64())
			return r.Float64() < 0.1, nil
		}).
		SetMaxIter(4).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]values, error) {
			r := ctx.Rand("close", -1)
			return append(listed(state.Get(ctx)), values{-1, r.Float64()}), nil
		})).
		Exec()
}
