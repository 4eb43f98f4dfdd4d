package kmeans

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// The training queue runs Lloyd's algorithm (Least squares quantization in PCM, IEEE
// Transactions on Information Theory 28, 1982). A superstep has these stages:
//
//	preallocate     once: views of the rows, and the buffers
//	assign cluster  per shard: nearest centres; k·(d+1)+1 sums
//	AllReduce       the sums of all shards, in the order of a tree over shards
//	find empty      report the inertia; list the empty clusters; decide on the end
//	find farthest   per shard, if clusters are empty: the farthest rows of the shard
//	AllReduce
//	choose reseeds  choose the farthest rows of all shards
//	gather reseeds  per shard: the chosen rows of the shard
//	AllReduce
//	update          the new centres and how far they moved
//
// Every subtask updates its own replica of the centres from the same sums. After the update
// that ends training, one more superstep evaluates the centres without moving them, so that the
// sizes and the inertia in the model belong to its final centres.

// These are the keys of the training queue's objects.
var (
	initialCenters = comqueue.BroadcastRows("initial centroids")
	centroids      = shared.Replicated("centroids", shared.Float64s())
	trainState     = shared.Replicated("state", shared.Msgpack[*lloydState]())
	centroidSums   = shared.Scratch[[]float64]("centroidAllReduce")
	farthestRows   = shared.Scratch[[]float64]("farthestAllReduce")
	reseedRows     = shared.Scratch[[]float64]("reseedAllReduce")
	lloydScratch   = shared.Scratch[*lloydWork]("work")
)

// lloydState is the progress of training. It is the same on every subtask.
type lloydState struct {
	Before   int  // number of updates in the queue that made the first centres
	Updates  int  // number of updates of the centres in this queue
	Settled  bool // whether no further update is needed
	Reseeded bool // whether the last update moved rows to empty clusters
	Stop     bool // whether the final centres have been evaluated
	Sizes    []float64
	Inertia  float64
	History  []Superstep
}

// lloydWork has what a subtask needs in addition to the state.
type lloydWork struct {
	blocks
	near   [][]int32 // for each shard and row, the nearest centre; before assign cluster, a guess
	assign assigner
	cost   []float64 // costs of a chunk of rows
	next   []float64 // the next centres
	empty  []int     // the clusters without weight
	chosen []farRow  // chosen[i] is the row that is moved to the cluster empty[i]
}

// lloyd has the parameters of a training queue; its methods are the stages.
type lloyd struct {
	in     input
	params Params
}

// addQueue adds the training queue and returns the model's dataset.
func (t lloyd) addQueue(b *engine.Builder, rows, centers *engine.Dataset) *engine.Dataset {
	return comqueue.New(b, "kmeans").
		InitWithPartitionedData(points.WithState(t.in.state(t.params.K)), rows).
		InitWithBroadcastData(initialCenters, centers).
		Add(comqueue.Named("preallocate", comqueue.Do(t.preallocate))).
		Add(comqueue.Named("assign cluster", comqueue.ForEachShard(centroidSums, t.assignCluster))).
		Add(comqueue.AllReduce(centroidSums)).
		Add(comqueue.Named("find empty clusters", comqueue.Do(t.findEmpty))).
		Add(comqueue.Named("find farthest rows", comqueue.ForEachShard(farthestRows, t.findFarthest))).
		Add(comqueue.AllReduce(farthestRows)).
		Add(comqueue.Named("choose reseeds", comqueue.Do(t.chooseReseeds))).
		Add(comqueue.Named("gather reseeds", comqueue.ForEachShard(reseedRows, t.gatherReseeds))).
		Add(comqueue.AllReduce(reseedRows)).
		Add(comqueue.Named("update centroids", comqueue.Do(t.updateCentroids))).
		SetCompareCriterionOfNode0(t.evaluated).
		SetMaxIter(t.params.MaxIter + 1).
		CloseOnNode0(signature.ModelCloser(nil, t.model)).
		Exec()
}

// preallocate makes the objects that the supersteps use.
func (t lloyd) preallocate(ctx *comqueue.ComContext) error {
	if lloydScratch.Has(ctx) {
		return nil
	}
	if !centroids.Has(ctx) {
		first, err := t.firstCenters(initialCenters.Get(ctx))
		if err != nil {
			return err
		}
		centroids.Put(ctx, first)
		made := initialCenters.Get(ctx)
		trainState.Put(ctx, &lloydState{
			Before:  int(made.Ints("updates")[0]),
			Settled: arrowrows.Record(made.Batch()).Column(2).(*array.Boolean).Value(0),
			Sizes:   make([]float64, t.params.K),
			History: make([]Superstep, 0, min(t.params.MaxIter+1, 1<<10)),
		})
	}
	k, d := t.params.K, len(centroids.Get(ctx))/t.params.K
	open, err := t.in.openBlocks(ctx, d)
	if err != nil {
		return err
	}
	w := &lloydWork{blocks: open, assign: newAssigner(t.in, k, open, d, t.params.MaxIter > 0), cost: make([]float64, chunkRows), next: make([]float64, k*d), empty: make([]int, 0, k)}
	for i := range open.block {
		w.near = append(w.near, make([]int32, open.block[i].n))
	}
	w.assign.set(centroids.Get(ctx))
	lloydScratch.Put(ctx, w)
	centroidSums.Put(ctx, make([]float64, k*(d+1)+1))
	farthestRows.Put(ctx, nil)
	reseedRows.Put(ctx, nil)
	return nil
}

// firstCenters returns a copy of the initial centres in f.
func (t lloyd) firstCenters(f *comqueue.Frame) ([]float64, error) {
	indptr, values, ok := batch.RaggedView(arrowrows.Record(f.Batch()).Column(0))
	if !ok || f.Rows() != t.params.K {
		return nil, fmt.Errorf("there are %d initial centres, want %d", f.Rows(), t.params.K)
	}
	first := make([]float64, indptr[f.Rows()]-indptr[0])
	copy(first, values[indptr[0]:])
	if t.in.single && !roundSingle(first) {
		return nil, errors.New("a component of the first centres is beyond the range of float32: use double precision")
	}
	if t.in.cosine {
		d := len(first) / t.params.K
		for a := range t.params.K {
			one := block{n: 1, d: d, dense: first[a*d : (a+1)*d]}
			one.expand(0, true, one.dense)
		}
	}
	return first, nil
}

// assignCluster adds each row of a shard to the sums of its nearest centre.
func (t lloyd) assignCluster(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := lloydScratch.Get(ctx)
	out[len(out)-1] = w.assign.accumulate(w.at(shard), shard-w.lo, w.near[shard-w.lo], out[:len(out)-1])
	return nil
}

// findEmpty reports the inertia of the superstep's centres, decides whether these are the final
// centres, and lists the clusters to reseed.
func (t lloyd) findEmpty(ctx *comqueue.ComContext) error {
	w, state, sums := lloydScratch.Get(ctx), trainState.Get(ctx), centroidSums.Get(ctx)
	k := t.params.K
	d := len(w.next) / k
	w.empty, w.chosen = w.empty[:0], w.chosen[:0]
	var total float64
	for a := range k {
		state.Sizes[a] = sums[a*(d+1)+d]
		total += state.Sizes[a]
		if state.Sizes[a] == 0 {
			w.empty = append(w.empty, a)
		}
	}
	state.Inertia = sums[len(sums)-1]
	if total == 0 {
		if t.params.WeightCol == "" {
			return errNoRows
		}
		return t.params.noWeight()
	}
	if !kernel.Finite(total) || !kernel.Finite(state.Inertia) {
		return t.params.overflow()
	}
	state.History = append(state.History, Superstep{Inertia: state.Inertia})
	ctx.Report("inertia", state.Inertia)
	// Empty clusters get rows even after the centres have settled, but only once. Otherwise, a
	// reseeding that moves no centre farther than Tol would be repeated for ever.
	last := state.Updates == t.params.MaxIter || state.Settled && (len(w.empty) == 0 || state.Reseeded)
	if last {
		state.Stop = true
		w.empty = w.empty[:0]
	}
	resize(ctx, farthestRows, ctx.TotalShards()*len(w.empty)*farSize)
	return nil
}

// updateCentroids moves each centre to the weighted mean of its rows.
func (t lloyd) updateCentroids(ctx *comqueue.ComContext) error {
	w, state := lloydScratch.Get(ctx), trainState.Get(ctx)
	if state.Stop {
		return nil
	}
	sums, current := centroidSums.Get(ctx), centroids.Get(ctx)
	k := t.params.K
	d := len(w.next) / k
	t.applyReseeds(w, reseedRows.Get(ctx), sums)
	var moved float64
	for a := range k {
		old, next := current[a*d:(a+1)*d], w.next[a*d:(a+1)*d]
		t.center(sums[a*(d+1):a*(d+1)+d], sums[a*(d+1)+d], old, next)
		if t.in.single && !roundSingle(next) {
			return t.params.overflow()
		}
		step := math.Sqrt(kernel.SquaredDistance(next, old))
		if !kernel.Finite(step) {
			return t.params.overflow()
		}
		moved = max(moved, step)
	}
	copy(current, w.next)
	w.assign.set(current)
	state.Updates++
	state.Reseeded = len(w.chosen) > 0
	state.Settled = moved <= t.params.Tol
	state.History[len(state.History)-1].Movement = moved
	ctx.Report("movement", moved)
	return nil
}

// center writes the mean of a cluster to next, or for cosine distance the direction of the
// mean. A cluster without weight keeps its old centre. So does a cluster for which the sum of
// the unit vectors is 0.
func (t lloyd) center(sum []float64, weight float64, old, next []float64) {
	copy(next, old)
	if !(weight > 0) {
		return
	}
	if !t.in.cosine {
		for j, v := range sum {
			next[j] = v / weight
		}
		return
	}
	for _, v := range sum {
		if v != 0 {
			unit(sum, next)
			return
		}
	}
}

// unit writes the unit vector of v to dst, which may be v. v must have a component that is not
// 0. unit first divides by the largest component, because squares might overflow otherwise.
func unit(v, dst []float64) {
	var top float64
	for _, x := range v {
		top = max(top, math.Abs(x))
	}
	for j, x := range v {
		dst[j] = x / top
	}
	norm := math.Sqrt(kernel.Dot(dst, dst))
	for j := range dst {
		dst[j] /= norm
	}
}

// evaluated is the stop criterion of the queue: the final centres have been evaluated.
func (t lloyd) evaluated(ctx *comqueue.ComContext) (bool, error) {
	return trainState.Get(ctx).Stop, nil
}

// model returns the trained model.
func (t lloyd) model(ctx *comqueue.ComContext) (model.Model, error) {
	state, c := trainState.Get(ctx), centroids.Get(ctx)
	d := len(c) / t.params.K
	m := &Model{
		Sizes: state.Sizes, Inertia: state.Inertia, Iterations: state.Before + state.Updates, Converged: state.Settled,
		Distance: t.params.Distance, Dim: d, VectorCol: t.params.VectorCol, VectorType: t.in.kind,
		PredictionCol: t.params.PredictionCol, DistanceCol: t.params.DistanceCol, History: state.History,
	}
	for a := range t.params.K {
		m.Centers = append(m.Centers, c[a*d:(a+1)*d])
	}
	return m, nil
}

// resize replaces the buffer of a key by a new buffer of n elements, unless it already has n
// elements.
func resize(ctx *comqueue.ComContext, key shared.Key[[]float64], n int) {
	if len(key.Get(ctx)) != n {
		key.Put(ctx, make([]float64, n))
	}
}
