package grow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSplitsAhead requires that growth leaf by leaf gives the same trees and rows at any
// parallelism. Several subtasks split leaves speculatively and undo some of the splits; a
// single subtask does not speculate. The trees of the single subtask are compared with the
// reference builder.
func TestSplitsAhead(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 51))
		params := Params{LeafWise: true, MaxDepth: -1, MaxLeaves: 20 + 20*int(seed), MinRows: int(seed)}
		x, kinds := randomProblem(rng, 700)
		x.large, x.tight = seed%2 == 1, seed == 2
		l := x.layout(rng, kinds)
		var want outcome
		for p := 1; p <= 3; p++ {
			got, _ := x.run(t, params, l, p, 2)
			for _, bag := range got.bags {
				for _, rows := range bag {
					slices.Sort(rows) // the order of the subtasks is arbitrary
				}
			}
			if p == 1 {
				want = got
			}
			what := fmt.Sprintf("seed %d, %d subtasks", seed, p)
			require.Equal(t, want.trees, got.trees, what)
			require.Equal(t, want.leaves, got.leaves, what)
			require.Equal(t, want.routed, got.routed, what)
			require.Equal(t, want.bags, got.bags, what)
		}
	}
}
