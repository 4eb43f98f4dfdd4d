package grow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// TestReference grows trees for random problems with random parameters at several parallelisms.
// It compares every field of every node, and the leaf of every row, with the results of the
// reference builder.
func TestReference(t *testing.T) {
	for seed := range uint64(referenceProblems) {
		checkReference(t, seed)
	}
}

func checkReference(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 6))
	params := randomParams(rng)
	n := 1 + rng.IntN(60)
	x, kinds := randomProblem(rng, n)
	if rng.IntN(3) == 0 {
		for f := range x.features {
			d := int8(rng.IntN(3) - 1)
			if x.features[f].Categorical {
				d = 0
			}
			params.Monotone = append(params.Monotone, d)
		}
	}
	if rng.IntN(4) == 0 {
		for range 1 + rng.IntN(3) {
			var group []int
			for range 1 + rng.IntN(3) {
				group = append(group, rng.IntN(len(x.features)))
			}
			params.Interaction = append(params.Interaction, group)
		}
	}
	l := x.layout(rng, kinds)
	p := 1 + rng.IntN(4)
	what := fmt.Sprintf("seed %d, %d rows, %d subtasks, %+v", seed, n, p, params)
	x.compare(t, params, l, p, 1+rng.IntN(2), what)
}

// compare grows the trees of a problem, and compares them with the trees of the reference
// builder. what describes the case in failures.
func (x *problem) compare(t *testing.T, params Params, l *bins.Layout, p, rounds int, what string) {
	n := len(x.bins)
	got, _ := x.run(t, params, l, p, rounds)
	for k := range x.trees {
		b := &builder{p: &params, x: x, rows: x.bag[k]}
		if b.rows == nil {
			for r := range n {
				b.rows = append(b.rows, int32(r))
			}
		}
		b.prepare(k % len(x.g))
		b.grow(k)
		want, leaf := b.tree()
		require.Equal(t, want, got.trees[k], what)
		seen := 0
		for node, rows := range got.bags[k] {
			seen += len(rows)
			require.True(t, slices.IsSorted(rows) || p > 1, what)
			for _, r := range rows {
				require.Equal(t, leaf[r], node, what)
				require.Equal(t, node, got.leaves[k][r], what)
			}
		}
		require.Equal(t, len(b.rows), seen, what)
		require.Equal(t, got.leaves[k], got.routed[k], what)
	}
}

// TestManyCategories compares trees with the reference builder on a numeric feature and a
// feature of hundreds of categories, whose bins and split positions do not fit in a byte.
func TestManyCategories(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 7))
		const n, categories = 450, 300
		x := &problem{trees: 1, bag: make([][]int32, 1), large: seed%2 == 0, g: [][]float64{make([]float64, n)}, h: [][]float64{make([]float64, n)}}
		x.features = []bins.Feature{
			{Name: "city", Bins: categories, Categorical: true, Column: -1, Slot: -1, Implicit: -1},
			{Name: "age", Number: 1, Bins: 3, Cuts: []float32{1, 2}, Column: -1, Slot: -1, Implicit: -1},
		}
		for b := range categories {
			x.features[0].Codes = append(x.features[0].Codes, int32(b*190))
		}
		for r := range n {
			city := r
			if r >= categories {
				city = rng.IntN(categories + 1)
			}
			x.bins = append(x.bins, []int{city, rng.IntN(4)})
			x.g[0][r], x.h[0][r] = math.Sin(float64(city*city))+rng.NormFloat64()/8, 1
		}
		params := Params{MaxDepth: 2, Lambda: 1, CategorySmooth: 1, LearnCategories: seed > 0, MaxCategories: int(seed) * 20, RootOfCategories: seed == 1}
		l := x.layout(rng, []int{asWide, asColumn})
		x.compare(t, params, l, 1+int(seed%3), 1, fmt.Sprintf("seed %d", seed))
	}
}
