package kmeans

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// Greedy k-means++ takes a centre per superstep. The subtasks draw the same trials. A trial is
// a row, drawn with a probability in proportion to its cost: its weight times what it adds to
// the objective, given the centres so far. A draw is a number between 0 and the total cost.
// Walking the shards' costs in order finds the shard that the number falls into, and the owner
// of the shard walks its rows. The costs that each trial would leave are gathered per shard,
// and the trial with the least total becomes a centre.

// Objects of the queue.
var (
	plusState   = shared.Replicated("state", shared.Msgpack[*plusPlusState]())
	plusCosts   = shared.PerShard("costs", shared.Float64s()) // by row, per unit of weight
	plusTrials  = shared.Scratch[[]float64]("trialsAllReduce")
	plusTotals  = shared.Scratch[[]float64]("costAllReduce")
	plusScratch = shared.Scratch[*plusPlusWork]("work")
)

// plusPlusState is the progress of the queue. It is the same on every subtask.
type plusPlusState struct {
	Dim     int
	Centers []float64
	Shards  []float64 // the cost of each shard, given the centres
}

// plusPlusWork holds what a subtask needs besides the state.
type plusPlusWork struct {
	blocks
	trials []place
	search []*searcher // by trial
}

// place is where a draw falls: a row of a shard, found by walking the costs of the shard's rows
// up to rest.
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

// preallocate makes room.
func (t plusPlus) preallocate(ctx *comqueue.ComContext) {
	plusTrials.Put(ctx, nil)
	plusTotals.Put(ctx, nil)
}

// trials returns how many rows are tried for the next centre. For the first centre one row is
// enough.
func (t plusPlus) trials(state *plusPlusState) int {
	if len(state.Centers) == 0 {
		return 1
	}
	return localTrials(t.params.K)
}

// localTrials is the number of trials in Arthur and Vassilvitskii's own code.
func localTrials(k int) int { return 2 + int(kernel.Log(float64(k))) }

// draw opens the shards, once, and says where the trials of this superstep fall.
func (t plusPlus) draw(ctx *comqueue.ComContext) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	w, state := plusScratch.Get(ctx), plusState.Get(ctx)
	total, taken := sum(state.Shards), len(state.Centers)/state.Dim
	switch {
	case !finite(total):
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

// open makes what all supersteps use, once the first has measured the shards.
func (t plusPlus) open(ctx *comqueue.ComContext) error {
	if plusScratch.Has(ctx) {
		return nil
	}
	if !plusState.Has(ctx) {
		mass, dim, err := t.params.measured(rowMass.Get(ctx))
		if err != nil {
			return err
		}
		// With no centre yet, every row costs its weight.
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

// sum adds the values from the first to the last.
func sum(values []float64) float64 {
	var total float64
	for _, v := range values {
		total += v
	}
	return total
}

// locate finds the place of target, a number from 0 up to the sum of the costs: the first i for
// which the sum of the costs up to i exceeds target. Rounding may carry target past all of
// them. Its place is then the end of the last that costs anything.
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

// row returns the row of a block that a place falls on. costs are per unit of weight.
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

// gather fills the slots of the trials that fall on a shard.
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

// setTrials prepares the searches for the trials.
func (t plusPlus) setTrials(ctx *comqueue.ComContext) error {
	w, d := plusScratch.Get(ctx), plusState.Get(ctx).Dim
	rows := plusTrials.Get(ctx)
	for i := range w.trials {
		w.search[i].setRows(rows[i*d:(i+1)*d], 1)
	}
	return nil
}

// try fills the slot of the shard for each trial with the cost that the trial would leave.
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
				if weight := part.weight(j); weight > 0 { // 0 times a cost beyond the range would be NaN
					total += float64(cost * weight)
				}
			}
		}
		out[i*ctx.TotalShards()+shard] = total
	}
	return nil
}

// takeBest makes the best trial a centre and brings the costs up to date.
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

// complete is the criterion: all centres are found.
func (t plusPlus) complete(ctx *comqueue.ComContext) (bool, error) {
	return t.full(plusState.Get(ctx)), nil
}

// output gives the centres.
func (t plusPlus) output(ctx *comqueue.ComContext) ([]centerRow, error) {
	state := plusState.Get(ctx)
	return centerRows(state.Centers, state.Dim), nil
}
