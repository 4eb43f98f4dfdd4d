package kmeans

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// The algorithm is mini-batch k-means (Sculley, Web-scale k-means clustering, WWW 2010). Each
// superstep draws a batch of rows, assigns them to their nearest centres, and moves each centre
// towards its rows. The learning rate of a centre is one divided by the number of rows that
// were assigned to it so far. So a centre is the mean of all rows that were ever assigned to
// it, and it is enough to keep their sum. As in Sculley's algorithm, centres move only after
// all rows of a batch have been assigned.
//
// The number of rows that a shard gives to a batch is in proportion to the number of its rows.
// The rows are drawn with replacement, and each draw depends only on seed, shard and superstep.

// MiniBatchParams are the parameters of TrainMiniBatch. Among Params, MaxIter is the largest
// number of batches, and 0 means 1000. Training ends when a batch moves no centre farther than
// Tol. Precision must be Double.
type MiniBatchParams struct {
	Params
	// BatchSize is the number of rows in a batch; 0 means 1024.
	BatchSize int
	// Training ends after Patience successive batches in which the smoothed inertia reached no
	// new minimum. The smoothed inertia is a weighted mean of the batches' inertias. The
	// weights decay within about half a pass over the data. A Patience of 0 means 10, and with
	// a negative Patience only MaxIter and Tol end training.
	Patience int
}

const (
	defaultBatchSize = 1024
	defaultBatches   = 1000
	defaultPatience  = 10
)

// Validate returns all errors about the parameters, joined.
func (p MiniBatchParams) Validate() error {
	errs := p.Params.problems()
	if p.BatchSize < 0 || p.BatchSize > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("BatchSize is %d: want 1 to %d, or 0 for %d", p.BatchSize, math.MaxInt32, defaultBatchSize))
	}
	return errors.Join(append(errs, p.Params.doubleOnly("mini-batches")...)...)
}

// doubleOnly returns an error for the precision Single, which only Train supports.
func (p Params) doubleOnly(who string) []error {
	if p.Precision == Single {
		return []error{fmt.Errorf("Precision is single: %s compute in double precision", who)}
	}
	return nil
}

// TrainMiniBatch trains a model by mini-batches: each superstep reads a batch of rows instead
// of all rows. The inertia of the result is a few percent above the inertia after Train, but
// TrainMiniBatch reads far fewer rows than Train. One more pass over all rows evaluates the
// centres, so that the model has the sizes and the inertia that predictions for the training
// rows give.
//
// The queue is named "kmeans mini-batch". For every batch it reports the smoothed inertia per
// unit of weight as "inertia", and the largest distance that a centre moved as "movement". A
// batch moves only those centres to which at least one of its rows is assigned. Clusters may be
// empty at the end.
func TrainMiniBatch(points *engine.Dataset, p MiniBatchParams) *engine.Dataset {
	p.MaxIter, p.BatchSize, p.Patience = cmp.Or(p.MaxIter, defaultBatches), cmp.Or(p.BatchSize, defaultBatchSize), cmp.Or(p.Patience, defaultPatience)
	return trainBy("kmeans.TrainMiniBatch", points, p.Params, p.Validate(), false, func(b *engine.Builder, rows *engine.Dataset, in input, own Params) *engine.Dataset {
		p.Params = own
		return miniBatch{in, p}.addQueue(b, rows, firstCenters(b, rows, in, own))
	})
}

// These are the keys of the queue's objects.
var (
	batchState   = shared.Replicated("state", shared.Msgpack[*batchesState]())
	batchSums    = shared.Scratch[[]float64]("sumsAllReduce")
	batchScratch = shared.Scratch[*batchWork]("work")
)

// batchesState is the progress of the training. It is the same on every subtask.
type batchesState struct {
	Dim      int
	Before   []float64 // number of rows in the shards before each shard; the last element is the number of all rows
	Centers  []float64
	Sums     []float64 // d sums and a weight for each centre, over all batches
	Batches  int
	Smoothed float64
	Least    float64 // smallest value that Smoothed has had
	Since    int     // number of batches since Smoothed had the value Least
	Settled  bool
}

// batchWork has what a subtask needs in addition to the state.
type batchWork struct {
	blocks
	gather *gatherer
	search *searcher
	rows   []int32
	next   []float64
}

// miniBatch has the parameters of the queue; its methods are the stages.
type miniBatch struct {
	in     input
	params MiniBatchParams
}

func (t miniBatch) addQueue(b *engine.Builder, rows, centers *engine.Dataset) *engine.Dataset {
	return t.in.begin(b, "kmeans mini-batch", rows, func(ctx *comqueue.ComContext) { batchSums.Put(ctx, nil) }).
		InitWithBroadcastData(initialCenters, centers).
		Add(comqueue.Named("open", comqueue.Do(t.open))).
		Add(comqueue.Named("assign batch", comqueue.ForEachShard(batchSums, t.assign))).
		Add(comqueue.AllReduce(batchSums)).
		Add(comqueue.Named("move centroids", comqueue.Do(t.move))).
		SetCompareCriterionOfNode0(t.complete).
		SetMaxIter(t.params.MaxIter).
		CloseOnNode0(comqueue.Output(t.output)).
		Exec()
}

// open makes the objects that all supersteps use, as soon as the first superstep has measured
// the shards.
func (t miniBatch) open(ctx *comqueue.ComContext) error {
	if batchScratch.Has(ctx) {
		return nil
	}
	k := t.params.K
	if !batchState.Has(ctx) {
		slots := rowMass.Get(ctx)
		if _, _, err := t.params.measured(slots); err != nil {
			return err
		}
		first, err := lloyd{t.in, t.params.Params}.firstCenters(initialCenters.Get(ctx))
		if err != nil {
			return err
		}
		d := len(first) / k
		state := &batchesState{Dim: d, Centers: first, Sums: make([]float64, k*(d+1)), Before: []float64{0}, Least: math.Inf(1)}
		for s := range ctx.TotalShards() {
			state.Before = append(state.Before, state.Before[s]+slots[massSize*s])
		}
		batchState.Put(ctx, state)
	}
	d := batchState.Get(ctx).Dim
	open, err := t.in.openBlocks(ctx, d)
	if err != nil {
		return err
	}
	w := &batchWork{blocks: open, gather: newGatherer(t.in, d), search: newSearcher(t.in, k, d), next: make([]float64, k*d)}
	w.search.set(batchState.Get(ctx).Centers)
	batchScratch.Put(ctx, w)
	resize(ctx, rowMass, 0)
	batchSums.Put(ctx, make([]float64, k*(d+1)+1))
	return nil
}

// share returns the number of rows that are drawn from a shard for each batch.
func (t miniBatch) share(state *batchesState, shard int) int {
	all := state.Before[len(state.Before)-1]
	upTo := func(s int) int { return int(math.Floor(float64(t.params.BatchSize) * (state.Before[s] / all))) }
	return upTo(shard+1) - upTo(shard)
}

// assign draws the shard's part of a batch and adds the drawn rows to the sums of their nearest
// centres.
func (t miniBatch) assign(ctx *comqueue.ComContext, shard int, out []float64) error {
	w, state := batchScratch.Get(ctx), batchState.Get(ctx)
	b, share := w.at(shard), t.share(state, shard)
	random := draws(t.params.Seed, "kmeans batch", shard, state.Batches)
	for lo := 0; lo < share; lo += chunkRows {
		w.rows = w.rows[:0]
		for i := lo; i < min(lo+chunkRows, share); i++ {
			w.rows = append(w.rows, int32(random.Float64At(uint64(i))*float64(b.n)))
		}
		part := w.gather.take(b, w.rows)
		clear(w.gather.near)
		out[len(out)-1] += w.search.accumulate(part, w.gather.near[:part.n], out[:len(out)-1])
	}
	return nil
}

// move moves the centres and decides whether training continues.
func (t miniBatch) move(ctx *comqueue.ComContext) error {
	w, state, sums := batchScratch.Get(ctx), batchState.Get(ctx), batchSums.Get(ctx)
	k, d := t.params.K, state.Dim
	var weight, moved float64
	train := lloyd{t.in, t.params.Params}
	for a := range k {
		got := sums[a*(d+1) : (a+1)*(d+1)]
		old, next := state.Centers[a*d:(a+1)*d], w.next[a*d:(a+1)*d]
		copy(next, old)
		weight += got[d]
		if got[d] > 0 {
			all := state.Sums[a*(d+1) : (a+1)*(d+1)]
			for j, v := range got {
				all[j] += v
			}
			train.center(all[:d], all[d], old, next)
		}
		step := math.Sqrt(squared(next, old))
		if !kernel.Finite(step) {
			return t.params.overflow()
		}
		moved = max(moved, step)
	}
	copy(state.Centers, w.next)
	w.search.set(state.Centers)
	inertia := sums[len(sums)-1]
	if !kernel.Finite(inertia) || !kernel.Finite(weight) {
		return t.params.overflow()
	}
	t.smooth(state, inertia, weight)
	state.Settled = weight > 0 && moved <= t.params.Tol
	ctx.Report("inertia", state.Smoothed)
	ctx.Report("movement", moved)
	return nil
}

// smooth updates the smoothed inertia with the inertia of a batch. A batch without weight does
// not change the smoothed inertia.
func (t miniBatch) smooth(state *batchesState, inertia, weight float64) {
	state.Batches++
	if weight == 0 {
		return
	}
	inertia /= weight
	// The batches of the last half pass over the rows have more weight than all earlier batches
	// together, as in scikit-learn.
	rate := min(2*float64(t.params.BatchSize)/(state.Before[len(state.Before)-1]+1), 1)
	if state.Batches > 1 {
		inertia = state.Smoothed + float64(rate*(inertia-state.Smoothed))
	}
	state.Smoothed = inertia
	state.Since++
	if inertia < state.Least {
		state.Least, state.Since = inertia, 0
	}
}

// complete is the stop criterion of the queue: the centres have settled, or the smoothed
// inertia has not improved for Patience batches.
func (t miniBatch) complete(ctx *comqueue.ComContext) (bool, error) {
	state := batchState.Get(ctx)
	return state.Settled || t.params.Patience > 0 && state.Since >= t.params.Patience, nil
}

// output returns the centres.
func (t miniBatch) output(ctx *comqueue.ComContext) ([]centerRow, error) {
	state := batchState.Get(ctx)
	stopped, err := t.complete(ctx)
	return found(centerRows(state.Centers, state.Dim), state.Batches, stopped), err
}

// found sets Updates and Settled in all rows, and returns rows.
func found(rows []centerRow, updates int, settled bool) []centerRow {
	for i := range rows {
		rows[i].Updates, rows[i].Settled = int64(updates), settled
	}
	return rows
}
