package kmeans

import (
	"math"
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// Bisecting k-means (Steinbach, Karypis and Kumar, A comparison of document clustering
// techniques, KDD Workshop on Text Mining 2000) as one queue over all shards. Cutting a
// cluster takes these supersteps:
//
//	drawFirst    every trial draws a row of the cluster, in proportion to its weight
//	drawSecond   and another, in proportion to weight times squared distance to the first
//	iterate      Lloyd's algorithm with two centres, all trials side by side, until all
//	             have settled or have had their updates
//	cut          the rows go to the nearer centre of the best trial
//
// A draw is a race: each row gets a number from the exponential distribution, divided by
// its share, and the smallest of all shards wins (Efraimidis and Spirakis, Weighted random
// sampling with a reservoir, 2006). Each shard keeps the numbers of its rows by cluster,
// so that a superstep reads the rows of one cluster alone.

// bisectPhase says what a superstep does.
type bisectPhase int

const (
	drawFirst bisectPhase = iota
	drawSecond
	iterate
	cut
)

// Objects of the queue.
var (
	bisectState   = shared.Replicated("state", shared.Msgpack[*bisectingState]())
	bisectLeaf    = shared.PerShard("cluster", shared.Int64s()) // by row
	bisectKeys    = shared.Scratch[[]float64]("drawsAllReduce")
	bisectRows    = shared.Scratch[[]float64]("rowsAllReduce")
	bisectSums    = shared.Scratch[[]float64]("sumsAllReduce")
	bisectScratch = shared.Scratch[*bisectWork]("work")
)

// bisectingState is how far the queue has come, the same on every subtask.
type bisectingState struct {
	Dim     int
	Leaves  []bisectLeaves
	Phase   bisectPhase
	Target  int // the leaf being cut
	Cuts    int // begun so far, failed ones too
	Trials  []bisectTrial
	Best    int // trial that is cut by
	Updates int // of this bisection
	Moves   int // updates of all bisections
	Done    bool
}

// bisectLeaves is a cluster.
type bisectLeaves struct {
	Center  []float64
	Weight  float64
	Inertia float64
	Whole   bool // its rows are all alike
}

// bisectTrial is two centres in the making.
type bisectTrial struct {
	Centers []float64 // 2·d
	Inertia float64
	Drawn   int // centres drawn
	Settled bool
}

// bisectWork is what a subtask needs besides.
type bisectWork struct {
	blocks
	order  [][]int32        // by shard: its rows, those of a leaf together, in order
	span   [][]shared.Range // by shard and leaf: where they stand
	gather *gatherer
	search []*searcher // by trial, for two centres
	one    []*searcher // by trial, for the first centre
	next   []float64
	picked []pick // by trial; shard -1: none
	spare  []int32
}

// bisecting has the parameters of the queue; its methods are the stages.
type bisecting struct {
	in     input
	params BisectingParams
}

func (t bisecting) addQueue(b *engine.Builder, rows *engine.Dataset) *engine.Dataset {
	return comqueue.New(b, "kmeans bisecting").
		InitWithPartitionedData(points, rows).
		Add(comqueue.Named("preallocate", t.preallocate)).
		Add(comqueue.Named("measure", comqueue.ForEachShard(rowMass, t.in.measure))).
		Add(comqueue.AllReduce(rowMass)).
		Add(comqueue.Named("open", t.open)).
		Add(comqueue.Named("draw", comqueue.ForEachShard(bisectKeys, t.draw))).
		Add(comqueue.AllReduce(bisectKeys)).
		Add(comqueue.Named("choose draws", t.choose)).
		Add(comqueue.Named("gather draws", comqueue.ForEachShard(bisectRows, t.gatherDraws))).
		Add(comqueue.AllReduce(bisectRows)).
		Add(comqueue.Named("assign", comqueue.ForEachShard(bisectSums, t.assign))).
		Add(comqueue.AllReduce(bisectSums)).
		Add(comqueue.Named("go on", t.advance)).
		SetCompareCriterionOfNode0(t.complete).
		CloseOnNode0(comqueue.Output(t.output)).
		Exec()
}

// preallocate makes room.
func (t bisecting) preallocate(ctx *comqueue.ComContext) error {
	if !rowMass.Has(ctx) {
		rowMass.Put(ctx, make([]float64, massSize*ctx.TotalShards()))
		bisectKeys.Put(ctx, nil)
		bisectRows.Put(ctx, nil)
		bisectSums.Put(ctx, nil)
	}
	return nil
}

// open makes what the supersteps use, from the measures of the first, and the buffers of
// this superstep.
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
		sums = 4 // weight and inertia of both sides
	}
	resize(ctx, bisectKeys, keys)
	resize(ctx, bisectSums, sums)
	return nil
}

// openRows opens the shards and lists their rows by cluster.
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

// listByLeaf returns the rows in the order of their leaves, and where each leaf's stand.
func listByLeaf(leaf []int64, leaves, room int) (order []int32, span []shared.Range) {
	span = make([]shared.Range, leaves, max(leaves, room))
	for _, a := range leaf {
		span[a].Hi++
	}
	at := 0
	for a := range span {
		n := span[a].Hi
		span[a] = shared.Range{Lo: at, Hi: at}
		at += n
	}
	order = make([]int32, len(leaf))
	for i, a := range leaf {
		order[span[a].Hi] = int32(i)
		span[a].Hi++
	}
	return order, span
}

// setTrials lays the centres of the trials out for the searches that are to come.
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

// target returns the numbers of a shard's rows in the leaf being cut.
func (w *bisectWork) target(shard, leaf int) []int32 {
	own := w.span[shard-w.lo][leaf]
	return w.order[shard-w.lo][own.Lo:own.Hi]
}

// draw fills the shard's slots with the winner of each trial's race among its rows: the
// row's number plus 1, and its time.
func (t bisecting) draw(ctx *comqueue.ComContext, shard int, out []float64) error {
	if len(out) == 0 {
		return nil
	}
	w, state := bisectScratch.Get(ctx), bisectState.Get(ctx)
	trials := len(state.Trials)
	slots := out[shard*trials*2:][:trials*2]
	random := draws(t.params.Seed, "kmeans bisecting", shard, 2*state.Cuts+int(state.Phase))
	rows := w.target(shard, state.Target)
	for lo := 0; lo < len(rows); lo += chunkRows {
		own := rows[lo:min(lo+chunkRows, len(rows))]
		part := w.gather.take(w.at(shard), own)
		for i := range trials {
			slot, cost := slots[2*i:2*i+2], w.gather.dist[:part.n]
			switch {
			case state.Phase == drawFirst:
				for r := range cost {
					cost[r] = 1
				}
			case state.Trials[i].Drawn == 1:
				w.one[i].costs(part, w.gather.near[:part.n], cost)
			default:
				continue
			}
			for r, row := range own {
				chance := float64(part.weight(r) * cost[r])
				if !(chance > 0) {
					continue
				}
				u := random.Float64At(uint64(row)*uint64(trials) + uint64(i))
				time := -kernel.Log1p(-u) / chance
				if slot[0] == 0 || time < slot[1] {
					slot[0], slot[1] = float64(row+1), time
				}
			}
		}
	}
	return nil
}

// choose picks the winners of all shards.
func (t bisecting) choose(ctx *comqueue.ComContext) error {
	w, slots := bisectScratch.Get(ctx), bisectKeys.Get(ctx)
	state := bisectState.Get(ctx)
	for i := range w.picked {
		w.picked[i].shard = -1
	}
	for at := 0; at < len(slots); at += 2 {
		if slots[at] == 0 {
			continue
		}
		p := pick{draw: slots[at+1], shard: at / 2 / len(w.picked), row: int(slots[at]) - 1}
		if own := &w.picked[at/2%len(w.picked)]; own.shard < 0 || p.before(*own) {
			*own = p
		}
	}
	n := 0
	if len(slots) > 0 {
		n = len(w.picked) * state.Dim
	}
	resize(ctx, bisectRows, n)
	return nil
}

// gatherDraws fills the slots of the picked rows of a shard.
func (t bisecting) gatherDraws(ctx *comqueue.ComContext, shard int, out []float64) error {
	w, d := bisectScratch.Get(ctx), bisectState.Get(ctx).Dim
	for i, p := range w.picked {
		if len(out) > 0 && p.shard == shard {
			w.at(shard).expand(p.row, t.in.cosine, out[i*d:(i+1)*d])
		}
	}
	return nil
}

// assign adds the rows of the leaf to the sums of every trial that has not settled, or
// divides them by the best one.
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

// divide moves the rows of a shard that are nearer to the second centre of the best
// trial to a new leaf, the next, and adds weight and inertia of both sides to out.
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
	*spans = append(*spans, shared.Range{Lo: own.Lo + kept, Hi: own.Hi})
	own = &(*spans)[state.Target]
	own.Hi = own.Lo + kept
}

// advance ends a superstep: it says what the next one does.
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

// takeDraws makes the drawn rows centres. A leaf in which no trial finds a second row
// that differs from the first stays whole.
func (t bisecting) takeDraws(w *bisectWork, state *bisectingState, rows []float64) error {
	d, most := state.Dim, 0
	want := int(state.Phase) + 1
	for i := range state.Trials {
		trial := &state.Trials[i]
		if state.Phase == drawFirst {
			*trial = bisectTrial{Centers: make([]float64, 2*d)}
		}
		if w.picked[i].shard >= 0 && trial.Drawn == want-1 {
			copy(trial.Centers[(want-1)*d:], rows[i*d:(i+1)*d])
			trial.Drawn = want
		}
		most = max(most, trial.Drawn)
	}
	if most < want {
		state.Leaves[state.Target].Whole = true
		return t.nextTarget(state)
	}
	t.setTrials(w, state)
	state.Phase++
	state.Updates = 0
	return nil
}

// update moves the centres of the trials, and ends the bisection where all have settled.
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
		if !finite(trial.Inertia) {
			return t.params.overflow()
		}
		var moved float64
		for a := range 2 {
			old, next := trial.Centers[a*d:(a+1)*d], w.next[a*d:(a+1)*d]
			train.center(own[a*(d+1):a*(d+1)+d], own[a*(d+1)+d], old, next)
			step := math.Sqrt(squared(next, old))
			if !finite(step) {
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

// addLeaf makes the two sides leaves.
func (t bisecting) addLeaf(ctx *comqueue.ComContext, w *bisectWork, state *bisectingState, sums []float64) error {
	d, trial := state.Dim, state.Trials[state.Best]
	side := func(a int) bisectLeaves {
		return bisectLeaves{Center: slices.Clone(trial.Centers[a*d : (a+1)*d]), Weight: sums[2*a], Inertia: sums[2*a+1]}
	}
	// Shards without rows were not asked to divide them.
	for i := range w.span {
		if len(w.span[i]) == len(state.Leaves) {
			w.span[i] = append(w.span[i], shared.Range{})
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

// undo takes back a cut that left one side without weight, which only rounding can do:
// the leaf stays whole.
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

// nextTarget chooses the leaf to cut next.
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
		return tooFewPoints(t.params.K, len(state.Leaves), t.in.cosine)
	}
	state.Phase = drawFirst
	state.Cuts++
	return nil
}

// complete is the criterion: there are K clusters.
func (t bisecting) complete(ctx *comqueue.ComContext) (bool, error) {
	return bisectState.Get(ctx).Done, nil
}

// output gives the centres.
func (t bisecting) output(ctx *comqueue.ComContext) ([]centerRow, error) {
	state := bisectState.Get(ctx)
	rows := make([]centerRow, len(state.Leaves))
	for i, l := range state.Leaves {
		rows[i].Center = l.Center
	}
	return found(rows, state.Moves, true), nil
}
