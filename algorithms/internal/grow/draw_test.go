package grow

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShare(t *testing.T) {
	for _, c := range []struct {
		part float64
		m, k int
	}{{0, 7, 7}, {1, 7, 7}, {0.5, 7, 3}, {0.1, 7, 1}, {0.99, 100, 99}, {0.5, 0, 0}, {0, 0, 0}} {
		require.Equal(t, c.k, share(c.part, c.m), "share(%v, %d) must be the rounded number of features", c.part, c.m)
	}
}

// TestTake requires that all features are drawn about equally often, that the drawn features
// are strictly ascending, and that the draws of trees, levels and nodes are independent.
func TestTake(t *testing.T) {
	const m, k, trees = 10, 3, 4000
	features := make([]int32, m)
	for i := range features {
		features[i] = int32(3 * i)
	}
	var c chooser
	var out []int32
	seen, sets := map[int32]int{}, map[uint64]bool{}
	for number := range trees {
		d, draw := treeDraws(99, number)
		out = c.take(features, k, draw, out)
		require.Len(t, out, k)
		require.True(t, slices.IsSorted(out))
		require.Len(t, slices.Compact(slices.Clone(out)), k)
		for _, f := range out {
			require.Zero(t, f%3)
			seen[f]++
		}
		for _, v := range []uint64{draw, d.level(0), d.level(1), d.node(1), d.node(2)} {
			sets[v] = true
		}
	}
	require.Len(t, sets, 5*trees)
	for _, f := range features {
		// The standard deviation of seen[f] is 29.
		require.InDelta(t, trees*k/m, seen[f], 120, "feature %d must be drawn about as often as the other features", f)
	}
	require.Equal(t, features, c.take(features, m, 1, out))
}

// TestLargeProblem compares trees with the reference builder on so many rows that a packed sum
// over all of them would overflow.
func TestLargeProblem(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 17))
	for _, minRows := range []int{0, 40} {
		params := Params{MaxDepth: 2, Lambda: 0.5, MinRows: minRows}
		x, kinds := randomProblem(rng, 8500)
		x.features, kinds = x.features[:min(3, len(x.features))], kinds[:min(3, len(kinds))]
		for f := range x.features {
			if kinds[f] == asBundle {
				kinds[f] = asSparse
			}
		}
		x.trees, x.bag, x.g, x.h, x.large = 1, make([][]int32, 1), x.g[:1], x.h[:1], true
		l := x.layout(rng, kinds)
		b := &builder{p: &params, x: x}
		for r := range x.bins {
			b.rows = append(b.rows, int32(r))
		}
		b.prepare(0)
		b.grow(0)
		want, _ := b.tree()
		require.Greater(t, len(want.Nodes), 4)
		for p := 1; p <= 3; p++ {
			got, _ := x.run(t, params, l, p, 1)
			require.Equal(t, want, got.trees[0], "with %d subtasks, the tree must equal the tree of the reference builder", p)
		}
	}
}
