package kmeans

import (
	"math"
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// This file has the stages of bisecting k-means that move the centres of the trials and then
// cut a cluster by the best trial; see bisectqueue.go.

// assign adds the rows of the target leaf to the sums of every trial that has not settled. In
// the phase cut, assign instead divides these rows into two clusters by the centres of the best
// trial.
func (t bisecting) assign(ctx *comqueue.ComContext, shard int, out []float64) error {
	w, state := bisectScratch.Get(ctx), bisectState.Get(ctx)
	rows := w.target(shard, state.Target)
	switch state.Phase {
	case cut:
		t.divide(w, state, shard, rows, bisectLeaf.Get(ctx, shard), out)
	case iterate:
		size := 2*(state.Dim+1) + 1
		for lo := 0; lo < len(rows); lo += chunkRows {
			part := w.gather.take(w.at(shard), rows[lo:min(lo+chunkRows, len(rows))])
			for i, trial := range state.Trials {
				if trial.Drawn == 2 && !trial.Settled {
					sums := out[i*size : (i+1)*size]
					clear(w.gather.near)
					sums[size-1] += w.search[i].accumulate(part, w.gather.near[:part.n], sums[:size-1])
				}
			}
		}
	}
	return nil
}

// divide handles the rows of a shard in the leaf that is cut. It moves the rows that are nearer
// to the second centre of the best trial to a new leaf, and adds the weight and the inertia of
// the rows of each of the two leaves to out.
func (t bisecting) divide(w *bisectWork, state *bisectingState, shard int, rows []int32, leaf []int64, out []float64) {
	search := w.search[state.Best]
	w.spare = w.spare[:0]
	kept := 0
	for lo := 0; lo < len(rows); lo += chunkRows {
		own := rows[lo:min(lo+chunkRows, len(rows))]
		part := w.gather.take(w.at(shard), own)
		near, cost := w.gather.near[:part.n], w.gather.dist[:part.n]
		clear(near)
		search.costs(part, near, cost)
		for r, row := range own {
			weight := part.weight(r)
			side := out[2*near[r] : 2*near[r]+2]
			side[0] += weight
			side[1] += float64(weight * cost[r])
			if near[r] == 0 {
				rows[kept] = row
				kept++
				continue
			}
			w.spare = append(w.spare, row)
			leaf[row] = int64(len(state.Leaves))
		}
	}
	copy(rows[kept:], w.spare)
	spans := &w.span[shard-w.lo]
	own := &(*spans)[state.Target]
	*spans = append(*spans, sharding.Range{Lo: own.Lo + kept, Hi: own.Hi})
	own = &(*spans)[state.Target]
	own.Hi = own.Lo + kept
}

// update moves the centres of the trials, and ends the bisection when all trials have settled.
func (t bisecting) update(ctx *comqueue.ComContext, w *bisectWork, state *bisectingState, sums []float64) error {
	d := state.Dim
	size := 2*(d+1) + 1
	train, settled := lloyd{t.in, t.params.Params}, true
	state.Updates++
	for i := range state.Trials {
		trial := &state.Trials[i]
		if trial.Drawn < 2 || trial.Settled {
			continue
		}
		own := sums[i*size : (i+1)*size]
		trial.Inertia = own[size-1]
		if !kernel.Finite(trial.Inertia) {
			return t.params.overflow()
		}
		var moved float64
		for a := range 2 {
			old, next := trial.Centers[a*d:(a+1)*d], w.next[a*d:(a+1)*d]
			train.center(own[a*(d+1):a*(d+1)+d], own[a*(d+1)+d], old, next)
			step := math.Sqrt(squared(next, old))
			if !kernel.Finite(step) {
				return t.params.overflow()
			}
			moved = max(moved, step)
		}
		copy(trial.Centers, w.next)
		trial.Settled = moved <= t.params.Tol || state.Updates == t.params.MaxIter
		settled = settled && trial.Settled
	}
	state.Best = -1
	for i, trial := range state.Trials {
		if trial.Drawn == 2 && (state.Best < 0 || trial.Inertia < state.Trials[state.Best].Inertia) {
			state.Best = i
		}
	}
	ctx.Report("inertia", state.Trials[state.Best].Inertia)
	t.setTrials(w, state)
	if settled {
		state.Phase = cut
		state.Moves += state.Updates
	}
	return nil
}

// addLeaf replaces the target leaf by two leaves, one for each side of the cut.
func (t bisecting) addLeaf(ctx *comqueue.ComContext, w *bisectWork, state *bisectingState, sums []float64) error {
	d, trial := state.Dim, state.Trials[state.Best]
	side := func(a int) bisectLeaves {
		return bisectLeaves{Center: slices.Clone(trial.Centers[a*d : (a+1)*d]), Weight: sums[2*a], Inertia: sums[2*a+1]}
	}
	// Shards without rows have not called divide, and lack an entry for the new leaf.
	for i := range w.span {
		if len(w.span[i]) == len(state.Leaves) {
			w.span[i] = append(w.span[i], sharding.Range{})
		}
	}
	if sums[0] == 0 || sums[2] == 0 {
		return t.undo(ctx, w, state)
	}
	state.Leaves[state.Target] = side(0)
	state.Leaves = append(state.Leaves, side(1))
	if len(state.Leaves) == t.params.K {
		state.Done = true
		return nil
	}
	return t.nextTarget(state)
}

// undo reverses a cut after which one of the two leaves has no weight. Only rounding errors can
// cause this. The leaf is not cut again.
func (t bisecting) undo(ctx *comqueue.ComContext, w *bisectWork, state *bisectingState) error {
	added := len(state.Leaves)
	for i, spans := range w.span {
		leaf := bisectLeaf.Get(ctx, w.lo+i)
		for _, row := range w.order[i][spans[added].Lo:spans[added].Hi] {
			leaf[row] = int64(state.Target)
		}
		spans[state.Target].Hi = max(spans[state.Target].Hi, spans[added].Hi)
		w.span[i] = spans[:added]
	}
	state.Leaves[state.Target].Whole = true
	return t.nextTarget(state)
}

// nextTarget chooses the leaf that is cut next.
func (t bisecting) nextTarget(state *bisectingState) error {
	state.Target = -1
	size := func(l bisectLeaves) float64 {
		if t.params.Split == LargestSize {
			return l.Weight
		}
		return l.Inertia
	}
	for i, l := range state.Leaves {
		if !l.Whole && l.Weight > 0 && (state.Target < 0 || size(l) > size(state.Leaves[state.Target])) {
			state.Target = i
		}
	}
	if state.Target < 0 {
		return t.params.tooFewPoints(len(state.Leaves), t.in.cosine)
	}
	state.Phase = drawFirst
	state.Cuts++
	return nil
}
