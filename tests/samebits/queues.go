package main

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// values is the type of the rows that the queues output.
type values struct {
	Index int64
	Value float64
}

// listed returns the elements of a buffer as rows.
func listed[T comqueue.Number](buffer []T) []values {
	rows := make([]values, len(buffer))
	for i, v := range buffer {
		rows[i] = values{int64(i), float64(v)}
	}
	return rows
}

// Lengths of the buffers of shardSums. A buffer of longBuffer elements is so long that every
// rank folds a part of it. A buffer of shortBuffer elements is so short that one rank folds it
// for all ranks.
const shortBuffer, longBuffer = 12, 9000

// shardSums adds a queue that reduces floats of shards: sums of two lengths, a product, a
// maximum, and reported sums. The results of each superstep are inputs of the next superstep.
func shardSums(b *engine.Builder, e *env) error {
	var (
		rows    = comqueue.PartitionedRows("rows")
		sums    = shared.Replicated("sums", shared.Float64s())
		long    = shared.Scratch[[]float64]("long")
		product = shared.Scratch[[]float32]("product")
		top     = shared.Scratch[[]float64]("top")
	)
	zeros := func(ctx *comqueue.ComContext) error {
		sums.Put(ctx, make([]float64, shortBuffer))
		return nil
	}
	room := func(ctx *comqueue.ComContext) error {
		long.Put(ctx, make([]float64, longBuffer))
		product.Put(ctx, make([]float32, shortBuffer))
		top.Put(ctx, make([]float64, 1))
		return nil
	}
	// each calls f for each row of a shard, with a value that depends on the superstep.
	each := func(ctx *comqueue.ComContext, shard int, f func(i int, key int64, v float64)) {
		e.pause(3+ctx.StepNo(), shard)
		frame, before := rows.Get(ctx, shard), sums.Get(ctx)
		keys, column := frame.Ints("key"), frame.Floats("value")
		for i, v := range column {
			f(i, keys[i], v/(1+math.Abs(before[keys[i]%shortBuffer])))
		}
	}
	trained := comqueue.New(b, "sums").
		InitWithPartitionedData(rows, operators.Generate(b, rowsPerJob, e.makeReading)).
		Begin(zeros).
		Init(room).
		Add(comqueue.ForEachShard(long, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			each(ctx, shard, func(i int, key int64, v float64) { out[(int(key)*89+i)%longBuffer] += v })
			return nil
		})).
		Add(comqueue.AllReduce(long)).
		Add(comqueue.ForEachShard(product, func(ctx *comqueue.ComContext, shard int, out []float32) error {
			each(ctx, shard, func(i int, key int64, v float64) {
				if i < 40 {
					out[key%shortBuffer] *= float32(math.Copysign(1, v)) * (1 + float32(i)/1024)
				}
			})
			return nil
		})).
		Add(comqueue.AllReduce(product, comqueue.Prod)).
		Add(comqueue.ForEachShard(top, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			each(ctx, shard, func(_ int, _ int64, v float64) { out[0] = max(out[0], v) })
			ctx.ReportMax("largest", shard, out[0])
			return nil
		})).
		Add(comqueue.AllReduce(top, comqueue.Max)).
		Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			total := 0.0
			each(ctx, shard, func(_ int, key int64, v float64) {
				out[key%shortBuffer] += v
				total += v
			})
			ctx.ReportSum("total", shard, total)
			return nil
		})).
		Add(comqueue.AllReduce(sums)).
		Do(func(ctx *comqueue.ComContext) error {
			ctx.Report("first", sums.Get(ctx)[0])
			return nil
		}).
		SetMaxIter(6).
		CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]values, error) {
			// The results must be the same in all subtasks, so every shard outputs the results.
			all := append(listed(sums.Get(ctx)), listed(product.Get(ctx))...)
			all = append(all, listed(top.Get(ctx))...)
			if shard == ctx.TotalShards()-1 {
				all = append(all, listed(long.Get(ctx))...)
			}
			return all, nil
		})).
		Exec()
	engine.Collect(trained, "buffers")
	return nil
}

// rankSums adds a queue that reduces whole buffers, one per subtask. The results depend on the
// parallelism, and must depend on no other setting.
func rankSums(b *engine.Builder, e *env) error {
	rows := comqueue.PartitionedRows("rows")
	short, long := shared.Replicated("short", shared.Float64s()), shared.Replicated("long", shared.Float64s())
	summed := comqueue.New(b, "ranks").
		InitWithPartitionedData(rows, operators.Generate(b, rowsPerJob, e.makeReading)).
		Begin(func(ctx *comqueue.ComContext) error {
			short.Put(ctx, make([]float64, shortBuffer))
			long.Put(ctx, make([]float64, longBuffer))
			return nil
		}).
		Do(func(ctx *comqueue.ComContext) error {
			e.pause(9+ctx.StepNo(), ctx.TaskID())
			s, l := short.Get(ctx), long.Get(ctx)
			divisor := float64(ctx.NumTask() + 1)
			for i := range s {
				s[i] /= divisor
			}
			for i := range l {
				l[i] /= divisor
			}
			return ctx.ForShards(func(shard int) error {
				frame := rows.Get(ctx, shard)
				keys, column := frame.Ints("key"), frame.Floats("value")
				for i, v := range column {
					s[keys[i]%shortBuffer] += v
					l[(int(keys[i])*89+i)%longBuffer] += v
				}
				return nil
			})
		}).
		Add(comqueue.AllReduce(short)).
		Add(comqueue.AllReduce(long)).
		SetMaxIter(6).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]values, error) {
			return append(listed(short.Get(ctx)), listed(long.Get(ctx))...), nil
		})).
		Exec()
	engine.Collect(summed, "buffers")
	return nil
}
