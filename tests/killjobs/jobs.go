package main

import (
	"time"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// clusters trains k-means and returns the rows with their clusters.
func (a args) clusters(rows *engine.Dataset) *engine.Dataset {
	points := operators.Vectorize(rows, "features", "a", "b", "d")
	model := kmeans.Train(points, kmeans.Params{VectorCol: "features", K: 100, MaxIter: a.Steps, Tol: -1, Init: kmeans.Random})
	return operators.Select(kmeans.Predict(points, model, kmeans.PredictOptions{}), "key", "cluster", "distance")
}

// odds trains a logistic regression by small batches and returns the rows with their
// probabilities. Every batch is a superstep.
func (a args) odds(rows *engine.Dataset) *engine.Dataset {
	model := logistic.Train(rows, logistic.Params{
		FeatureCols: []string{"a", "b", "c", "d"}, LabelCol: "label", L2: 1e-4, MaxIter: a.Steps, Tol: -1,
		Method: optim.SGD, Stochastic: optim.Stochastic{Batch: 2000, Momentum: 0.9},
	})
	return operators.Select(logistic.Predict(rows, model, logistic.PredictOptions{}), "key", "prediction", "probability")
}

// trees trains boosted trees and returns the rows with their predictions.
func (a args) trees(rows *engine.Dataset) *engine.Dataset {
	model := gbdt.Train(rows, gbdt.Params{
		FeatureCols: []string{"a", "b", "c", "d"}, LabelCol: "label", Objective: gbdt.Logistic,
		NumTrees: a.Steps, MaxDepth: 5, Subsample: 0.7,
	})
	return operators.Select(gbdt.Predict(rows, model, gbdt.PredictOptions{}), "key", "prediction", "probability")
}

// cells is the number of elements of the objects of the queue.
const cells = 16

// cell is a row that the queue makes of its state.
type cell struct {
	Key, Index   int64
	State, Total float64
}

// queue has state under a key per shard and under a replicated key. Each depends on the other in
// every superstep, and in the order of the additions, so that a state that is lost, repeated or
// mixed up changes all results.
func (a args) queue(b *engine.Builder, rows *engine.Dataset) *engine.Dataset {
	var (
		data   = comqueue.PartitionedRows("rows")
		state  = shared.PerShard("state", shared.Float64s())
		totals = shared.Replicated("totals", shared.Float64s())
		sums   = shared.Scratch[[]float64]("sums")
	)
	return comqueue.New(b, "states").
		InitWithPartitionedData(data, operators.PartitionByHash(rows, "key")).
		Begin(func(ctx *comqueue.ComContext) error {
			totals.Put(ctx, make([]float64, cells))
			return ctx.ForShards(func(shard int) error {
				state.Put(ctx, shard, make([]float64, cells))
				return nil
			})
		}).
		Init(func(ctx *comqueue.ComContext) error {
			sums.Put(ctx, make([]float64, cells))
			return nil
		}).
		Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			own, all := state.Get(ctx, shard), totals.Get(ctx)
			keys, values := data.Get(ctx, shard).Ints("key"), data.Get(ctx, shard).Floats("a")
			for i, v := range values {
				at := (int(keys[i]) + ctx.StepNo()) % cells
				own[at] = float64(own[at]*0.75) + v - float64(all[at]*1e-6)
				out[at] += own[at]
			}
			return nil
		})).
		Add(comqueue.AllReduce(sums)).
		Do(func(ctx *comqueue.ComContext) error {
			for i, v := range sums.Get(ctx) {
				totals.Get(ctx)[i] = float64(totals.Get(ctx)[i]/3) + v
			}
			return nil
		}).
		Add(comqueue.Named("pause", comqueue.Do(a.pause))).
		SetMaxIter(a.Steps).
		CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) (all []cell, err error) {
			for i, v := range state.Get(ctx, shard) {
				all = append(all, cell{int64(shard), int64(i), v, totals.Get(ctx)[i]})
			}
			return all, nil
		})).
		Exec()
}

// pause waits in every superstep.
func (a args) pause(ctx *comqueue.ComContext) error {
	ctx.Report("step", float64(ctx.StepNo()))
	if a.Pause <= 0 {
		return nil
	}
	select {
	case <-time.After(a.Pause):
	case <-ctx.Context().Done():
	}
	return ctx.Context().Err()
}

// group is a row of the shuffle.
type group struct {
	Key         int64
	Rows        int64
	Mixed, Last float64
}

// shuffle folds the rows of each key, in an order that matters, joins the results with the rows,
// and sorts these. It has no queue.
func (a args) shuffle(rows *engine.Dataset) *engine.Dataset {
	spread := operators.Rebalance(rows)
	groups := operators.FoldGroups(operators.GroupBy(spread, "key"),
		func() group { return group{} },
		func(g group, r row) group { return group{r.Key, g.Rows + 1, float64(g.Mixed/3) + r.A, r.B} },
		func(_ struct{ Key int64 }, g group) group { return g })
	joined := operators.Join(spread, groups, operators.On("key"), operators.Inner, func(r *row, g *group) group {
		return group{r.Key, g.Rows, float64(g.Mixed/7) + r.B, r.A}
	})
	return operators.Sort(joined, operators.Asc("mixed"), operators.Desc("last"))
}
