package kmeans

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// Greedy k-means++ chooses one centre per superstep. All subtasks draw the same trials. A trial
// is a row that is drawn with a probability in proportion to its cost. The cost of a row is
// what it adds to the inertia with the centres so far. To draw a trial, a random number between
// 0 and the total cost is compared with the running sum of the costs. All subtasks find the
// shard of the trial in this way, and the subtask that owns the shard finds the row. For each
// trial, each shard computes the cost that its rows would have if the trial were a centre. The
// trial with the smallest total cost becomes a centre.

// These are the keys of the queue's objects.
var (
	plusState   = shared.Replicated("state", shared.Msgpack[*plusPlusState]())
	plusCosts   = shared.PerShard("costs", shared.Float64s()) // cost of each row per unit of weight
	plusTrials  = shared.Scratch[[]float64]("trialsAllReduce")
	plusTotals  = shared.Scratch[[]float64]("costAllReduce")
	plusScratch = shared.Scratch[*plusPlusWork]("work")
)

// plusPlusState is the progress of k-means++. It is the same on every subtask.
type plusPlusState struct {
	Dim     int
	Centers []float64
	Shards  []float64 // cost of each shard with the centres so far
}

// plusPlusWork has what a subtask needs in addition to the state.
type plusPlusWork struct {
	blocks
	trials []place
	search []*searcher // a searcher for each trial
}

// place identifies a drawn row. It is the first row of shard at which the running sum of the
// costs of the shard's rows exceeds rest.
type place struct {
	shard int
	rest  float64
}

// plusPlus has the parameters of the queue; its methods are the stages.
type plusPlus struct {
	in     input
	params Params
}

func (t plusPlus) addQueue(b *engine.Builder, rows *engine.Dataset) *engine.Dataset {
	return t.in.begin(b, "kmeans++", rows, t.preallocate).
		Add(comqueue.Named("draw trials", comqueue.Do(t.draw))).
		Add(comqueue.Named("gather trials", comqueue.ForEachShard(plusTrials, t.gather))).
		Add(comqueue.AllReduce(plusTrials)).
		Add(comqueue.Named("set trials", comqueue.Do(t.setTrials))).
		Add(comqueue.Named("try", comqueue.ForEachShard(plusTotals, t.try))).
		Add(comqueue.AllReduce(plusTotals)).
		Add(comqueue.Named("take best", comqueue.Do(t.takeBest))).
		SetCompareCriterionOfNode0(t.complete).
		SetMaxIter(t.params.K).
		CloseOnNode0(comqueue.Output(t.output)).
		Exec()
}

// preallocate makes the objects of the queue.
func (t plusPlus) preallocate(ctx *comqueue.ComContext) {
	plusTrials.Put(ctx, nil)
	plusTotals.Put(ctx, nil)
}

// trials returns the number of rows that are tried for the next centre. It is 1 for the first
// centre.
func (t plusPlus) trials(state *plusPlusState) int {
	if len(state.Centers) == 0 {
		return 1
	}
	return localTrials(t.params.K)
}

// localTrials returns the number of trials for each of k centres. It is the number in the code
// of Arthur and Vassilvitskii.
func localTrials(k int) int { return 2 + int(kernel.Log(float64(k))) }

// draw opens the shards, once, and draws the trials of this superstep.
func (t plusPlus) draw(ctx *comqueue.ComContext) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	w, state := plusScratch.Get(ctx), plusState.Get(ctx)
	total, taken := sum(state.Shards), len(state.Centers)/state.Dim
	switch {
	case !kernel.Finite(total):
		return t.params.overflow()
	case total == 0:
		return t.params.tooFewPoints(taken, t.in.cosine)
	}
	random := draws(t.params.Seed, "kmeans++", -1, taken)
	w.trials = w.trials[:0]
	for i := range t.trials(state) {
		w.trials = append(w.trials, locate(state.Shards, float64(random.Float64At(uint64(i))*total)))
	}
	resize(ctx, plusTrials, len(w.trials)*state.Dim)
	resize(ctx, plusTotals, len(w.trials)*ctx.TotalShards())
	return nil
}

// open makes the objects that all supersteps use, as soon as the first superstep has measured
// the shards.
func (t plusPlus) open(ctx *comqueue.ComContext) error {
	if plusScratch.Has(ctx) {
		return nil
	}
	if !plusState.Has(ctx) {
		mass, dim, err := t.params.measured(rowMass.Get(ctx))
		if err != nil {
			return err
		}
		// While there are no centres, the cost of a row is its weight.
		plusState.Put(ctx, &plusPlusState{Dim: dim, Shards: mass, Centers: make([]float64, 0, t.params.K*dim)})
	}
	state := plusState.Get(ctx)
	open, err := t.in.openBlocks(ctx, state.Dim)
	if err != nil {
		return err
	}
	w := &plusPlusWork{blocks: open}
	for range localTrials(t.params.K) {
		w.search = append(w.search, newSearcher(t.in, 1, state.Dim))
	}
	plusScratch.Put(ctx, w)
	resize(ctx, rowMass, 0)
	for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
		if !plusCosts.Has(ctx, shard) {
			costs := make([]float64, w.at(shard).n)
			for i := range costs {
				costs[i] = 1
			}
			plusCosts.Put(ctx, shard, costs)
		}
	}
	return nil
}

// sum adds the values in order, from the first to the last.
func sum(values []float64) float64 {
	var total float64
	for _, v := range values {
		total += v
	}
	return total
}

// locate returns the place of target, which is a number from 0 up to the sum of costs. costs[i]
// is the cost of shard i. The place's shard is the first i for which costs[0]+…+costs[i]
// exceeds target. If target is not below the sum of all costs, because of rounding errors, the
// place is the end of the last shard whose cost is above 0.
func locate(costs []float64, target float64) place {
	last := place{0, math.Inf(1)}
	for i, cost := range costs {
		if cost > 0 {
			if target < cost {
				return place{i, target}
			}
			last.shard = i
			target -= cost
		}
	}
	return last
}

// row returns the number of the row that p identifies in the block b. costs are the costs of
// the rows per unit of weight.
func (p place) row(b *block, costs []float64) int {
	target, last := p.rest, 0
	for i, cost := range costs {
		if cost = float64(cost * b.weight(i)); cost > 0 {
			if target < cost {
				return i
			}
			last = i
			target -= cost
		}
	}
	return last
}

// gather writes the rows of a shard that are trials to their slots.
func (t plusPlus) gather(ctx *comqueue.ComContext, shard int, out []float64) error {
	w, d := plusScratch.Get(ctx), plusState.Get(ctx).Dim
	for i, p := range w.trials {
		if p.shard == shard {
			b := w.at(shard)
			b.expand(p.row(b, plusCosts.Get(ctx, shard)), t.in.cosine, out[i*d:(i+1)*d])
		}
	}
	return nil
}

// setTrials prepares the searchers for the trials.
func (t plusPlus) setTrials(ctx *comqueue.ComContext) error {
	w, d := plusScratch.Get(ctx), plusState.Get(ctx).Dim
	rows := plusTrials.Get(ctx)
	for i := range w.trials {
		w.search[i].setRows(rows[i*d:(i+1)*d], 1)
	}
	return nil
}

// try writes, for each trial, the cost that the rows of the shard would have if the trial were
// a centre.
func (t plusPlus) try(ctx *comqueue.ComContext, shard int, out []float64) error {
	w, all := plusScratch.Get(ctx), plusCosts.Get(ctx, shard)
	first := len(plusState.Get(ctx).Centers) == 0
	b := w.at(shard)
	for i := range w.trials {
		s := w.search[i]
		var total float64
		for lo := 0; lo < b.n; lo += chunkRows {
			part := b.rows(lo, min(lo+chunkRows, b.n))
			s.costs(&part, s.near[:part.n], s.dist[:part.n])
			for j, cost := range s.dist[:part.n] {
				if !first {
					cost = min(cost, all[lo+j])
				}
				if weight := part.weight(j); weight > 0 { // 0 times an infinite cost would be NaN
					total += float64(cost * weight)
				}
			}
		}
		out[i*ctx.TotalShards()+shard] = total
	}
	return nil
}

// takeBest makes the best trial a centre and updates the costs.
func (t plusPlus) takeBest(ctx *comqueue.ComContext) error {
	w, state := plusScratch.Get(ctx), plusState.Get(ctx)
	totals, shards := plusTotals.Get(ctx), ctx.TotalShards()
	best, least := 0, math.Inf(1)
	for i := range w.trials {
		if total := sum(totals[i*shards : (i+1)*shards]); total < least {
			best, least = i, total
		}
	}
	first := len(state.Centers) == 0
	copy(state.Shards, totals[best*shards:(best+1)*shards])
	state.Centers = append(state.Centers, plusTrials.Get(ctx)[best*state.Dim:(best+1)*state.Dim]...)
	if t.full(state) {
		return nil
	}
	s := w.search[best]
	return ctx.ForShards(func(shard int) error {
		b, all := w.at(shard), plusCosts.Get(ctx, shard)
		for lo := 0; lo < b.n; lo += chunkRows {
			part := b.rows(lo, min(lo+chunkRows, b.n))
			s.costs(&part, s.near[:part.n], s.dist[:part.n])
			for j, cost := range s.dist[:part.n] {
				if first || cost < all[lo+j] {
					all[lo+j] = cost
				}
			}
		}
		return nil
	})
}

// full reports whether there are K centres.
func (t plusPlus) full(state *plusPlusState) bool { return len(state.Centers) == t.params.K*state.Dim }

// complete is the stop criterion of the queue: all centres are found.
func (t plusPlus) complete(ctx *comqueue.ComContext) (bool, error) {
	return t.full(plusState.Get(ctx)), nil
}

// output returns the centres.
func (t plusPlus) output(ctx *comqueue.ComContext) ([]centerRow, error) {
	state := plusState.Get(ctx)
	return centerRows(state.Centers, state.Dim), nil
}
