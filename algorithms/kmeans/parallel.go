package kmeans

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// This file implements k-means|| (Bahmani et al., Scalable k-means++, VLDB 2012). The first
// superstep draws one row, with a probability in proportion to its weight, as the only
// candidate. Each further superstep is a round. The cost of a row is its weight times its
// squared distance to the nearest candidate. In a round, every row becomes a candidate with a
// probability of Oversampling times the row's cost divided by the cost of all rows. The new
// candidates of all shards are gathered in the order of shards and rows. After the rounds the
// weight of a candidate is the total weight of the rows nearest to it, and subtask 0 clusters
// the weighted candidates.

// These are the keys of the queue's objects.
var (
	parallelState   = shared.Replicated("state", shared.Msgpack[*parallelInitState]())
	parallelCosts   = shared.PerShard("costs", shared.Float64s()) // cost of each row per unit of weight
	parallelNearest = shared.PerShard("nearest", shared.Int64s()) // nearest candidate of each row
	// memberWeights has, for each candidate, the total weight of the rows nearest to it. It is
	// empty before the last superstep.
	memberWeights   = shared.Replicated("membersAllReduce", shared.Float64s())
	sampleCounts    = shared.Scratch[[]float64]("countsAllReduce")  // number of samples of each shard
	sampleRows      = shared.Scratch[[]float64]("samplesAllReduce") // d values for each sample
	parallelCost    = shared.Scratch[[]float64]("costAllReduce")    // one value: the cost of all rows
	parallelScratch = shared.Scratch[*parallelInitWork]("work")
)

// parallelInitState is the progress of k-means||. It is the same on every subtask.
type parallelInitState struct {
	Dim        int
	Rounds     int // number of rounds so far
	Candidates []float64
	Mass       []float64 // total weight of each shard
	Cost       float64   // cost of all rows with the current candidates
	Enough     bool      // whether there are enough candidates, so that no round follows
}

// parallelInitWork has what a subtask needs in addition to the state.
type parallelInitWork struct {
	blocks
	sampled [][]int32 // for each shard, the rows that were drawn in this round
}

// parallelInit has the parameters of the queue; its methods are the stages.
type parallelInit struct {
	in     input
	params Params
}

func (t parallelInit) addQueue(b *engine.Builder, rows *engine.Dataset) *engine.Dataset {
	return t.in.begin(b, "kmeans||", rows, t.preallocate).
		Add(comqueue.Named("open", comqueue.Do(t.open))).
		Add(comqueue.Named("sample", comqueue.ForEachShard(sampleCounts, t.sample))).
		Add(comqueue.AllReduce(sampleCounts)).
		Add(comqueue.Named("count samples", comqueue.Do(t.count))).
		Add(comqueue.Named("gather samples", comqueue.ForEachShard(sampleRows, t.gather))).
		Add(comqueue.AllReduce(sampleRows)).
		Add(comqueue.Named("add candidates", comqueue.Do(t.addCandidates))).
		Add(comqueue.Named("cost", comqueue.ForEachShard(parallelCost, t.cost))).
		Add(comqueue.AllReduce(parallelCost)).
		Add(comqueue.Named("check candidates", comqueue.Do(t.checkEnough))).
		Add(comqueue.Named("weigh candidates", comqueue.ForEachShard(memberWeights, t.weigh))).
		Add(comqueue.AllReduce(memberWeights)).
		SetCompareCriterionOfNode0(t.complete).
		CloseOnNode0(comqueue.Output(t.output)).
		Exec()
}

// preallocate makes the objects of the queue.
func (t parallelInit) preallocate(ctx *comqueue.ComContext) {
	sampleCounts.Put(ctx, make([]float64, ctx.TotalShards()))
	sampleRows.Put(ctx, nil)
	parallelCost.Put(ctx, make([]float64, 1))
	memberWeights.Put(ctx, nil)
}

// open makes the objects that all supersteps use, as soon as the first superstep has measured
// the shards.
func (t parallelInit) open(ctx *comqueue.ComContext) error {
	if parallelScratch.Has(ctx) {
		return nil
	}
	if !parallelState.Has(ctx) {
		mass, dim, err := t.params.measured(rowMass.Get(ctx))
		if err != nil {
			return err
		}
		parallelState.Put(ctx, &parallelInitState{Dim: dim, Mass: mass})
	}
	open, err := t.in.openBlocks(ctx, parallelState.Get(ctx).Dim)
	if err != nil {
		return err
	}
	parallelScratch.Put(ctx, &parallelInitWork{blocks: open, sampled: make([][]int32, len(open.block))})
	resize(ctx, rowMass, 0)
	for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
		if !parallelCosts.Has(ctx, shard) {
			costs := make([]float64, open.at(shard).n)
			for i := range costs {
				costs[i] = math.Inf(1) // there is no candidate yet, so every candidate will be nearer
			}
			parallelCosts.Put(ctx, shard, costs)
			parallelNearest.Put(ctx, shard, make([]int64, len(costs)))
		}
	}
	return nil
}

// sample draws the rows of a shard that become candidates, and writes their number to the slot
// of the shard.
func (t parallelInit) sample(ctx *comqueue.ComContext, shard int, out []float64) error {
	w, state := parallelScratch.Get(ctx), parallelState.Get(ctx)
	b := w.at(shard)
	rows := w.sampled[shard-w.lo][:0]
	if len(state.Candidates) == 0 {
		random := draws(t.params.Seed, "kmeans parallel", -1, 0)
		first := locate(state.Mass, float64(random.Float64At(0)*sum(state.Mass)))
		if first.shard == shard {
			ones := make([]float64, b.n)
			for i := range ones {
				ones[i] = 1
			}
			rows = append(rows, int32(first.row(b, ones)))
		}
	} else {
		random := draws(t.params.Seed, "kmeans parallel", shard, state.Rounds)
		for i, cost := range parallelCosts.Get(ctx, shard) {
			likely := float64(float64(t.params.Oversampling*b.weight(i))*cost) / state.Cost
			if likely > 0 && random.Float64At(uint64(i)) < likely {
				rows = append(rows, int32(i))
			}
		}
	}
	w.sampled[shard-w.lo] = rows
	out[shard] = float64(len(rows))
	return nil
}

// count allocates the buffer for the samples of all shards.
func (t parallelInit) count(ctx *comqueue.ComContext) error {
	resize(ctx, sampleRows, int(sum(sampleCounts.Get(ctx)))*parallelState.Get(ctx).Dim)
	return nil
}

// gather writes the samples of a shard to its slots, which follow the slots of the preceding
// shards.
func (t parallelInit) gather(ctx *comqueue.ComContext, shard int, out []float64) error {
	w, d := parallelScratch.Get(ctx), parallelState.Get(ctx).Dim
	at := int(sum(sampleCounts.Get(ctx)[:shard])) * d
	for _, row := range w.sampled[shard-w.lo] {
		w.at(shard).expand(int(row), t.in.cosine, out[at:at+d])
		at += d
	}
	return nil
}

// addCandidates adds those samples that differ from all candidates so far, and finds the rows
// to which they are nearest.
func (t parallelInit) addCandidates(ctx *comqueue.ComContext) error {
	w, state := parallelScratch.Get(ctx), parallelState.Get(ctx)
	d, before := state.Dim, len(state.Candidates)
	state.Candidates = addDistinct(t.in, state.Candidates, sampleRows.Get(ctx), d)
	added := (len(state.Candidates) - before) / d
	if added == 0 {
		return nil
	}
	s := newSearcher(t.in, added, d)
	s.setRows(state.Candidates[before:], added)
	return ctx.ForShards(func(shard int) error {
		b, all, nearest := w.at(shard), parallelCosts.Get(ctx, shard), parallelNearest.Get(ctx, shard)
		for lo := 0; lo < b.n; lo += chunkRows {
			part := b.rows(lo, min(lo+chunkRows, b.n))
			s.costs(&part, s.near[:part.n], s.dist[:part.n])
			for i, cost := range s.dist[:part.n] {
				if cost < all[lo+i] {
					all[lo+i], nearest[lo+i] = cost, int64(before/d)+int64(s.near[i])
				}
			}
		}
		return nil
	})
}

// cost adds the costs of the rows of a shard to out.
func (t parallelInit) cost(ctx *comqueue.ComContext, shard int, out []float64) error {
	b := parallelScratch.Get(ctx).at(shard)
	for i, cost := range parallelCosts.Get(ctx, shard) {
		if weight := b.weight(i); weight > 0 { // 0 times an infinite cost would be NaN
			out[0] += float64(weight * cost)
		}
	}
	return nil
}

// checkEnough decides whether there are enough candidates, so that no further round is needed.
func (t parallelInit) checkEnough(ctx *comqueue.ComContext) error {
	state := parallelState.Get(ctx)
	state.Cost = parallelCost.Get(ctx)[0]
	found := len(state.Candidates) / state.Dim
	switch {
	case !kernel.Finite(state.Cost):
		return t.params.overflow()
	case state.Cost == 0 && found < t.params.K:
		return t.params.tooFewPoints(found, t.in.cosine)
	}
	state.Enough = found >= t.params.K && (state.Rounds >= t.params.InitSteps || state.Cost == 0)
	state.Rounds++
	if state.Enough {
		resize(ctx, memberWeights, found)
	}
	return nil
}

// weigh adds the weight of each row of a shard to the weight of its nearest candidate. It does
// nothing until there are enough candidates.
func (t parallelInit) weigh(ctx *comqueue.ComContext, shard int, out []float64) error {
	if len(out) == 0 {
		return nil
	}
	b := parallelScratch.Get(ctx).at(shard)
	for i, a := range parallelNearest.Get(ctx, shard) {
		out[a] += b.weight(i)
	}
	return nil
}

// complete is the stop criterion of the queue: there are enough candidates.
func (t parallelInit) complete(ctx *comqueue.ComContext) (bool, error) {
	return parallelState.Get(ctx).Enough, nil
}

// output clusters the candidates and returns the centres.
func (t parallelInit) output(ctx *comqueue.ComContext) ([]centerRow, error) {
	state := parallelState.Get(ctx)
	local := newLocal(t.in.cosine, state.Candidates, memberWeights.Get(ctx), state.Dim, t.params)
	centers, err := local.cluster(ctx.Context())
	if err != nil {
		return nil, err
	}
	return centerRows(centers, state.Dim), nil
}
