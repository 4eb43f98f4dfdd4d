package grow

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// TestOverflowingSlots grows trees on gradients of one sign, so that packed sums over all rows
// of a slot would overflow. It requires that sparse features give the same trees as the same
// features in columns.
func TestOverflowingSlots(t *testing.T) {
	const n = 17_000
	rng := rand.New(rand.NewPCG(41, 42))
	x := &problem{bins: make([][]int, n), trees: 2, g: make([][]float64, 1), h: make([][]float64, 1), bag: make([][]int32, 2), large: true}
	for f, count := range []int{2, 40, 3} {
		feature := bins.Feature{Number: f, Bins: count, Column: -1, Slot: -1, Implicit: f}
		for b := range count - 1 {
			feature.Cuts = append(feature.Cuts, float32(b))
		}
		x.features = append(x.features, feature)
	}
	for r := range n {
		x.bins[r] = []int{rng.IntN(3), rng.IntN(41), max(0, 2-rng.IntN(20))}
		x.g[0] = append(x.g[0], 0.9+float64(x.bins[r][0]+x.bins[r][2])/100+rng.Float64()/20)
		x.h[0] = append(x.h[0], 1)
		if rng.IntN(10) > 0 {
			x.bag[1] = append(x.bag[1], int32(r))
		}
	}
	for _, minRows := range []int{0, 5} {
		params := Params{MaxDepth: 3, MinRows: minRows}
		features := x.features
		var want outcome
		for _, kind := range []int{asColumn, asSparse} {
			x.features = append([]bins.Feature(nil), features...)
			if kind == asColumn {
				for f := range x.features {
					x.features[f].Implicit = -1
				}
			}
			l := x.layout(rng, []int{kind, kind, kind})
			got, _ := x.run(t, params, l, 1, 1)
			if want.trees == nil {
				want = got
				require.Greater(t, len(got.trees[0].Nodes), 10)
				require.Greater(t, math.Abs(got.trees[1].Nodes[0].Value), 0.9)
			}
			require.Equal(t, want.trees, got.trees)
			require.Equal(t, want.leaves, got.leaves)
			require.Equal(t, got.leaves, got.routed)
		}
		x.features = features
	}
}
