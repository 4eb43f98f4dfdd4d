package kmeans

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// assigner runs the inner loop of training on one subtask. It finds the nearest centre of every
// row of the subtask's shards.
type assigner interface {
	// set copies the k centres, which have d values each.
	set(centers []float64)
	// accumulate assigns each row of a shard to its nearest centre and adds it to sums. sums
	// has d+1 numbers for each centre: d sums of components and a sum of weights. at is the
	// index of the shard among the shards of the subtask. On entry, near has the number of each
	// row's centre in the previous superstep, or any other guess. On return, near has the
	// number of each row's nearest centre. accumulate returns the inertia of the rows.
	accumulate(b *block, at int, near []int32, sums []float64) float64
	// costs writes to cost what each of the rows [lo, hi) adds to the inertia per unit of
	// weight. hi−lo may be at most chunkRows. accumulate must have been called before with the
	// same centres.
	costs(b *block, lo, hi int, near []int32, cost []float64)
}

// newAssigner returns the fastest assigner for the rows. again is set if more than one
// superstep follows. In that case bounds are used to skip distances of dense rows, if there is
// memory for bounds.
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

// valueSize returns the number of bytes of a component of a dense row.
func (in input) valueSize() int {
	if in.single {
		return 4
	}
	return 8
}

// sampledRows is roughly the number of rows in a sample. By this sample a subtask decides
// whether bounds save time.
const sampledRows = 256

// pruned is an assigner that uses a pruner.
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

// unpruned is an assigner that uses a searcher.
type unpruned struct{ *searcher }

func (a unpruned) accumulate(b *block, _ int, near []int32, sums []float64) float64 {
	return a.searcher.accumulate(b, near, sums)
}

func (a unpruned) costs(b *block, lo, hi int, _ []int32, cost []float64) {
	part := b.rows(lo, hi)
	a.searcher.costs(&part, a.near[:part.n], cost)
}
