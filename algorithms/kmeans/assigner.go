package kmeans

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// assigner is the inner loop of training on one subtask: it finds the nearest centre of
// every row of its shards.
type assigner interface {
	// set copies the centres, k*d values.
	set(centers []float64)
	// accumulate assigns the rows of a shard and adds them to sums, d sums and a weight for
	// each centre. at is the place of the shard among those of the subtask. near holds the
	// assignment of the superstep before, or any guess, and gets the new one. It returns the
	// inertia of the rows.
	accumulate(b *block, at int, near []int32, sums []float64) float64
	// costs writes what each of the rows [lo, hi) adds to the objective per unit of weight.
	// There are at most chunkRows of them. accumulate was called before, with the same centres.
	costs(b *block, lo, hi int, near []int32, cost []float64)
}

// newAssigner returns the fastest assigner for the rows. If again says that more than one
// superstep is to come, bounds prune the distances of dense rows where there is room for
// bounds.
func newAssigner(in input, k int, open blocks, d int, again bool) assigner {
	groups := 0
	if again {
		groups = groupsFor(k, d, in.valueSize())
	}
	switch {
	case in.cosine || in.layout == rows.SparseRows || k == 1 || groups == 0:
	case in.single:
		p := newPruner[float32](k, d, groups)
		return newPruned(p, open, func(b *block) []float32 { return b.single })
	default:
		p := newPruner[float64](k, d, groups)
		return newPruned(p, open, func(b *block) []float64 { return b.dense })
	}
	return unpruned{newSearcher(in, k, d)}
}

// valueSize is the size of a component of a dense row in bytes.
func (in input) valueSize() int {
	if in.single {
		return 4
	}
	return 8
}

// sampledRows is about the number of rows from which a subtask decides whether bounds are worth
// it.
const sampledRows = 256

// pruned assigns with a pruner.
type pruned[T kernel.Float] struct {
	*pruner[T]
	rows  func(b *block) []T
	shard []*bounds
}

func newPruned[T kernel.Float](p *pruner[T], open blocks, rows func(b *block) []T) pruned[T] {
	a := pruned[T]{pruner: p, rows: rows}
	for i := range open.block {
		b := &open.block[i]
		a.shard = append(a.shard, p.newBounds(b.n))
		few := min(b.n, 1+sampledRows/len(open.block))
		for r := range few {
			at := r * b.n / few * b.d
			p.sample = append(p.sample, rows(b)[at:at+b.d]...)
		}
	}
	return a
}

func (a pruned[T]) accumulate(b *block, at int, near []int32, sums []float64) float64 {
	return a.pruner.accumulate(a.rows(b), b.n, b.w, near, a.shard[at], sums)
}

func (a pruned[T]) costs(b *block, lo, hi int, near []int32, cost []float64) {
	a.own(a.rows(b)[lo*a.d:hi*a.d], near[lo:hi])
	for i, key := range a.key[:hi-lo] {
		v := math.Sqrt(float64(key))
		cost[i] = v * v
	}
}

// unpruned assigns with a searcher.
type unpruned struct{ *searcher }

func (a unpruned) accumulate(b *block, _ int, near []int32, sums []float64) float64 {
	return a.searcher.accumulate(b, near, sums)
}

func (a unpruned) costs(b *block, lo, hi int, _ []int32, cost []float64) {
	part := b.rows(lo, hi)
	a.searcher.costs(&part, a.near[:part.n], cost)
}
