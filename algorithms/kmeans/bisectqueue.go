package kmeans

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Bisecting k-means (Steinbach, Karypis and Kumar, A comparison of document clustering
// techniques, KDD Workshop on Text Mining 2000) runs as one queue over all shards. Cutting a
// cluster takes these supersteps:
//
//	drawFirst    every trial draws a row of the cluster, in proportion to its weight
//	drawSecond   every trial draws another row, in proportion to weight times squared
//	             distance to the first row
//	iterate      Lloyd's algorithm with two centres, all trials side by side, until all
//	             have settled or have had MaxIter updates
//	cut          the rows go to the nearer centre of the best trial
//
// A draw is a race: each row draws a time from the exponential distribution and divides it by
// the row's weight in the draw. The row with the smallest time of all shards wins (Efraimidis
// and Spirakis, Weighted random sampling with a reservoir, 2006). Each shard lists its rows by
// cluster, so that a superstep reads only the rows of one cluster.

// bisectPhase is the phase of a bisection to which a superstep belongs.
type bisectPhase int

const (
	drawFirst bisectPhase = iota
	drawSecond
	iterate
	cut
)

// These are the keys of the queue's objects.
var (
	bisectState   = shared.Replicated("state", shared.Msgpack[*bisectingState]())
	bisectLeaf    = shared.PerShard("cluster", shared.Int64s()) // leaf of each row
	bisectKeys    = shared.Scratch[[]float64]("drawsAllReduce")
	bisectRows    = shared.Scratch[[]float64]("rowsAllReduce")
	bisectSums    = shared.Scratch[[]float64]("sumsAllReduce")
	bisectScratch = shared.Scratch[*bisectWork]("work")
)

// bisectingState is the progress of bisecting. It is the same on every subtask.
type bisectingState struct {
	Dim     int
	Leaves  []bisectLeaves
	Phase   bisectPhase
	Target  int // the leaf being cut
	Cuts    int // number of cuts begun so far, including failed ones
	Trials  []bisectTrial
	Best    int // index of the trial by whose centres the leaf is cut
	Updates int // number of updates in this bisection
	Moves   int // number of updates in all bisections
	Done    bool
}

// bisectLeaves is a leaf: one of the current clusters.
type bisectLeaves struct {
	Center  []float64
	Weight  float64
	Inertia float64
	Whole   bool // the leaf is not cut, because its rows are all equal or a cut failed
}

// bisectTrial has the two centres of a trial, which are updated until the trial settles.
type bisectTrial struct {
	Centers []float64 // 2·d values
	Inertia float64
	Drawn   int // number of centres drawn so far
	Settled bool
}

// bisectWork has what a subtask needs in addition to the state.
type bisectWork struct {
	blocks
	order  [][]int32          // for each shard, the numbers of its rows, grouped by leaf and ascending within a leaf
	span   [][]sharding.Range // for each shard and leaf, the range of the leaf's rows in the shard's element of order
	gather *gatherer
	search []*searcher // for each trial, a searcher for both centres
	one    []*searcher // for each trial, a searcher for the first centre
	next   []float64
	picked []pick // the row picked for each trial; shard -1 means none
	spare  []int32
}

// bisecting has the parameters of the queue; its methods are the stages.
type bisecting struct {
	in     input
	params BisectingParams
}

func (t bisecting) addQueue(b *engine.Builder, rows *engine.Dataset) *engine.Dataset {
	return t.in.begin(b, "kmeans bisecting", rows, t.preallocate).
		Add(comqueue.Named("open", comqueue.Do(t.open))).
		Add(comqueue.Named("draw", comqueue.ForEachShard(bisectKeys, t.draw))).
		Add(comqueue.AllReduce(bisectKeys)).
		Add(comqueue.Named("choose draws", comqueue.Do(t.choose))).
		Add(comqueue.Named("gather draws", comqueue.ForEachShard(bisectRows, t.gatherDraws))).
		Add(comqueue.AllReduce(bisectRows)).
		Add(comqueue.Named("assign", comqueue.ForEachShard(bisectSums, t.assign))).
		Add(comqueue.AllReduce(bisectSums)).
		Add(comqueue.Named("go on", comqueue.Do(t.advance))).
		SetCompareCriterionOfNode0(t.complete).
		CloseOnNode0(comqueue.Output(t.output)).
		Exec()
}

// preallocate makes the objects of the queue.
func (t bisecting) preallocate(ctx *comqueue.ComContext) {
	bisectKeys.Put(ctx, nil)
	bisectRows.Put(ctx, nil)
	bisectSums.Put(ctx, nil)
}

// open makes the objects that all supersteps use, as soon as the first superstep has measured
// the shards, and the buffers of this superstep.
func (t bisecting) open(ctx *comqueue.ComContext) error {
	if !bisectScratch.Has(ctx) {
		if err := t.openRows(ctx); err != nil {
			return err
		}
	}
	state := bisectState.Get(ctx)
	keys, sums := 0, 0
	switch d := state.Dim; state.Phase {
	case drawFirst, drawSecond:
		keys = ctx.TotalShards() * t.params.Trials * 2
	case iterate:
		sums = t.params.Trials * (2*(d+1) + 1)
	case cut:
		sums = 4 // weight and inertia of each of the two new leaves
	}
	resize(ctx, bisectKeys, keys)
	resize(ctx, bisectSums, sums)
	return nil
}

// openRows opens the shards and lists the rows of each shard by leaf.
func (t bisecting) openRows(ctx *comqueue.ComContext) error {
	if !bisectState.Has(ctx) {
		mass, dim, err := t.params.measured(rowMass.Get(ctx))
		if err != nil {
			return err
		}
		bisectState.Put(ctx, &bisectingState{Dim: dim, Leaves: []bisectLeaves{{Weight: sum(mass)}}, Trials: make([]bisectTrial, t.params.Trials)})
	}
	state := bisectState.Get(ctx)
	open, err := t.in.openBlocks(ctx, state.Dim)
	if err != nil {
		return err
	}
	w := &bisectWork{blocks: open, gather: newGatherer(t.in, state.Dim), next: make([]float64, 2*state.Dim)}
	for range t.params.Trials {
		w.search = append(w.search, newSearcher(t.in, 2, state.Dim))
		w.one = append(w.one, newSearcher(t.in, 1, state.Dim))
		w.picked = append(w.picked, pick{})
	}
	most := 0
	for i := range open.block {
		shard := open.lo + i
		n := open.block[i].n
		most = max(most, n)
		if !bisectLeaf.Has(ctx, shard) {
			bisectLeaf.Put(ctx, shard, make([]int64, n))
		}
		order, span := listByLeaf(bisectLeaf.Get(ctx, shard), len(state.Leaves), t.params.K)
		w.order, w.span = append(w.order, order), append(w.span, span)
	}
	w.spare = make([]int32, 0, most)
	bisectScratch.Put(ctx, w)
	t.setTrials(w, state)
	resize(ctx, rowMass, 0)
	return nil
}

// listByLeaf returns the numbers of the rows, ordered by leaf, and span, which has the range of
// each leaf in order. leaf has the leaf of each row, and leaves is the number of leaves. The
// capacity of span is at least room.
func listByLeaf(leaf []int64, leaves, room int) (order []int32, span []sharding.Range) {
	span = make([]sharding.Range, leaves, max(leaves, room))
	for _, a := range leaf {
		span[a].Hi++
	}
	at := 0
	for a := range span {
		n := span[a].Hi
		span[a] = sharding.Range{Lo: at, Hi: at}
		at += n
	}
	order = make([]int32, len(leaf))
	for i, a := range leaf {
		order[span[a].Hi] = int32(i)
		span[a].Hi++
	}
	return order, span
}

// setTrials copies the centres of the trials to their searchers.
func (t bisecting) setTrials(w *bisectWork, state *bisectingState) {
	for i, trial := range state.Trials {
		if trial.Drawn > 0 {
			w.one[i].setRows(trial.Centers[:state.Dim], 1)
		}
		if trial.Drawn > 1 {
			w.search[i].set(trial.Centers)
		}
	}
}

// target returns the numbers of the rows of a shard that are in the leaf being cut.
func (w *bisectWork) target(shard, leaf int) []int32 {
	own := w.span[shard-w.lo][leaf]
	return w.order[shard-w.lo][own.Lo:own.Hi]
}

// advance ends a superstep and determines the phase of the next one.
func (t bisecting) advance(ctx *comqueue.ComContext) error {
	w, state := bisectScratch.Get(ctx), bisectState.Get(ctx)
	var err error
	switch state.Phase {
	case drawFirst, drawSecond:
		err = t.takeDraws(w, state, bisectRows.Get(ctx))
	case iterate:
		err = t.update(ctx, w, state, bisectSums.Get(ctx))
	case cut:
		err = t.addLeaf(ctx, w, state, bisectSums.Get(ctx))
	}
	ctx.Report("clusters", float64(len(state.Leaves)))
	return err
}

// complete is the stop criterion of the queue: there are K clusters.
func (t bisecting) complete(ctx *comqueue.ComContext) (bool, error) {
	return bisectState.Get(ctx).Done, nil
}

// output returns the centres of the clusters.
func (t bisecting) output(ctx *comqueue.ComContext) ([]centerRow, error) {
	state := bisectState.Get(ctx)
	rows := make([]centerRow, len(state.Leaves))
	for i, l := range state.Leaves {
		rows[i].Center = l.Center
	}
	return found(rows, state.Moves, true), nil
}
