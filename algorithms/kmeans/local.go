package kmeans

import (
	"context"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// This file clusters the candidates that k-means|| has sampled, on one subtask. It runs greedy
// k-means++ and then Lloyd's algorithm, several times if that is cheap, and uses the result
// with the smallest inertia.

const (
	// localRuns is the largest number of times that the candidates are clustered.
	localRuns = 8
	// localWork limits the number of runs. The number of runs after the first, times the
	// numbers of candidates, of clusters and of components, may be at most localWork.
	localWork = 1 << 24
	// localIterations is the largest number of updates of centres in a run.
	localIterations = 100
)

// local clusters weighted points on one subtask. At least K distinct points must have a weight
// above 0.
type local struct {
	t      lloyd
	b      block
	near   []int32
	cost   []float64 // cost of each point per unit of weight
	search *searcher
	one    *searcher // a searcher for a single centre
	sums   []float64
	next   []float64
}

func newLocal(cosine bool, points, weights []float64, d int, p Params) *local {
	in := input{layout: rows.DenseRows, cosine: cosine, column: p.VectorCol}
	n := len(points) / d
	return &local{
		t:    lloyd{in, p},
		b:    block{n: n, d: d, dense: points, w: weights},
		near: make([]int32, n), cost: make([]float64, n),
		search: newSearcher(in, p.K, d), one: newSearcher(in, 1, d),
		sums: make([]float64, p.K*(d+1)), next: make([]float64, p.K*d),
	}
}

// cluster returns the centres of the run with the smallest inertia, row-major.
func (l *local) cluster(ctx context.Context) ([]float64, error) {
	runs := 1 + min(localRuns-1, localWork/(l.b.n*l.t.params.K*l.b.d))
	var best []float64
	least := math.Inf(1)
	for run := range runs {
		centers := l.plusPlus(ctx, run)
		inertia := l.lloyd(ctx, centers)
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if best == nil || inertia < least {
			best, least = centers, inertia
		}
	}
	return best, nil
}

// plusPlus returns the first centres of a run, which are chosen by greedy k-means++.
func (l *local) plusPlus(ctx context.Context, run int) []float64 {
	k, d, n := l.t.params.K, l.b.d, l.b.n
	random := draws(l.t.params.Seed, "kmeans local", -1, run)
	trials := localTrials(k)
	centers := make([]float64, k*d)
	for i := range l.cost {
		l.cost[i] = 1
	}
	try, bestCost := make([]float64, n), make([]float64, n)
	for taken := 0; taken < k && ctx.Err() == nil; taken++ {
		var total float64
		for i, cost := range l.cost {
			total += float64(cost * l.b.weight(i))
		}
		best, least := -1, math.Inf(1)
		for range trials {
			row := place{0, float64(random.Float64() * total)}.row(&l.b, l.cost)
			var left float64
			l.costs(row, try)
			for i, cost := range try {
				if taken > 0 {
					cost = min(cost, l.cost[i])
				}
				try[i] = cost
				left += float64(cost * l.b.weight(i))
			}
			if best < 0 || left < least {
				best, least = row, left
				try, bestCost = bestCost, try
			}
		}
		l.cost, bestCost = bestCost, l.cost
		copy(centers[taken*d:], l.b.dense[best*d:(best+1)*d])
	}
	return centers
}

// costs writes the cost that each point would have if the point with the number row were the
// only centre.
func (l *local) costs(row int, cost []float64) {
	d := l.b.d
	l.one.set(l.b.dense[row*d : (row+1)*d])
	for lo := 0; lo < l.b.n; lo += chunkRows {
		part := l.b.rows(lo, min(lo+chunkRows, l.b.n))
		l.one.costs(&part, l.one.near[:part.n], cost[lo:lo+part.n])
	}
}

// lloyd moves the centres until they settle, and returns their inertia. A cluster that loses
// all its points keeps its centre.
func (l *local) lloyd(ctx context.Context, centers []float64) float64 {
	k, d := l.t.params.K, l.b.d
	for update := 0; ; update++ {
		l.search.set(centers)
		clear(l.sums)
		inertia := l.search.accumulate(&l.b, l.near, l.sums)
		if update == localIterations || ctx.Err() != nil {
			return inertia
		}
		var moved float64
		for a := range k {
			old, next := centers[a*d:(a+1)*d], l.next[a*d:(a+1)*d]
			l.t.center(l.sums[a*(d+1):a*(d+1)+d], l.sums[a*(d+1)+d], old, next)
			moved = max(moved, kernel.SquaredDistance(next, old))
		}
		if moved == 0 {
			return inertia
		}
		copy(centers, l.next)
	}
}
