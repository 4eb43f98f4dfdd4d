package forest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// TestForestsThatWouldNotFitAFile requires that a forest whose file would be too large is
// refused, with advice, as soon as its first trees show that.
func TestForestsThatWouldNotFitAFile(t *testing.T) {
	e := &tree.Ensemble{Features: []string{"x"}, Outputs: 1, Base: []float64{0}, Average: true, Single: true}
	trees, err := tree.NewWriter(e, 100)
	require.NoError(t, err)
	w := &written{trees: trees}
	for range 4 {
		require.NoError(t, w.add(&tree.Tree{Weight: 1, Nodes: []tree.Node{{Left: 1, Right: 2, Threshold: 0.5}, {Value: 1}, {Value: 2}}}))
	}
	each := trees.Size() / 4
	require.NoError(t, w.fits(4, 100, int64(110*each)))
	err = w.fits(4, 100, int64(90*each))
	require.ErrorContains(t, err, "4 of 100 trees take ")
	require.ErrorContains(t, err, "want smaller trees, by MaxDepth, MaxLeaves or MinSamplesLeaf, or fewer, by NumTrees")
}
