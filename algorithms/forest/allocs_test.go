//go:build !race

package forest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGrowingAllocatesNothing requires that a builder grows a tree in the memory of earlier
// trees.
func TestGrowingAllocatesNothing(t *testing.T) {
	for _, classes := range []int{0, 2, 5} {
		x, label := generated(3000, 6)
		for i := range label {
			label[i] = float64(i * 7 % max(classes, 9))
			if classes > 0 {
				label[i] = float64(int(label[i]) % classes)
			}
		}
		tab := quantiles(x, 3000, 6, label, classes)
		c := Gini
		if classes == 0 {
			c = Variance
		}
		b := newBuilder(tab, rules{criterion: c, tried: 2, depth: 20, minLeaf: 1, minSplit: 2}, newSampler(Params{Sampling: Bootstrap, SampleShare: 1}))
		for range 3 {
			b.grow(context.Background(), 1)
		}
		nodes := 0
		allocs := testing.AllocsPerRun(5, func() { nodes = len(b.grow(context.Background(), 1).Nodes) })
		require.Greater(t, nodes, 500)
		require.Zero(t, allocs)
	}
}
