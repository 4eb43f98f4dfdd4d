package algorithm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Forests have equal hashes if and only if they have equal texts.
func TestForestsAreToldApart(t *testing.T) {
	forest := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sharding.Node {
		return sharding.Node{Level: rapid.IntRange(0, 1).Draw(t, "level"), Index: rapid.IntRange(0, 1).Draw(t, "index")}
	}), 0, 2), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		a, b := forest.Draw(t, "a"), forest.Draw(t, "b")
		require.Equal(t, fmt.Sprint(a) == fmt.Sprint(b), hashForests(a) == hashForests(b), "%v %v", a, b)
	})
}

// The tree over nodes is compared with that over ranks by structure, not by the order
// in which its steps are listed.
func TestFoldsLikeRanksLooksAtTrees(t *testing.T) {
	leaf := func(i int) []sharding.Node { return []sharding.Node{sharding.Leaf(i)} }
	require.True(t, FoldsLikeRanks([][]sharding.Node{leaf(0), leaf(1), leaf(2), leaf(3)}))
	require.False(t, FoldsLikeRanks([][]sharding.Node{leaf(1), leaf(0), leaf(2), leaf(3)}), "other sides")
	require.False(t, FoldsLikeRanks([][]sharding.Node{leaf(0), leaf(2), leaf(1), leaf(3)}), "other pairs")
	require.False(t, FoldsLikeRanks([][]sharding.Node{leaf(0), leaf(1), leaf(2), leaf(3), leaf(4)}), "(0 1)(2 3) 4")
	require.False(t, FoldsLikeRanks([][]sharding.Node{{sharding.Leaf(0), sharding.Leaf(1)}, leaf(2)}), "two nodes")
	require.False(t, FoldsLikeRanks([][]sharding.Node{leaf(0), leaf(0)}), "one node twice")
}
