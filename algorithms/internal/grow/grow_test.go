package grow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReference grows trees of random problems under random options at several
// parallelisms, and compares every field of every node, and where every row ends, with
// those of the reference builder.
func TestReference(t *testing.T) {
	for seed := range uint64(referenceProblems) {
		checkReference(t, seed)
	}
}

func checkReference(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 6))
	params := randomParams(rng)
	n := 1 + rng.IntN(60)
	x, kinds := randomProblem(rng, n, &params)
	if params.Criterion == Newton && rng.IntN(3) == 0 {
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
	got, _ := x.run(t, params, l, p, 1+rng.IntN(2))
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
