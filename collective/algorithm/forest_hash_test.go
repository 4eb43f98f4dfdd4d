package algorithm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestForestsAreToldApart requires that forests have equal hashes if and only if they have
// equal texts.
func TestForestsAreToldApart(t *testing.T) {
	forest := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sharding.Node {
		return sharding.Node{Level: rapid.IntRange(0, 1).Draw(t, "level"), Index: rapid.IntRange(0, 1).Draw(t, "index")}
	}), 0, 2), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		a, b := forest.Draw(t, "a"), forest.Draw(t, "b")
		require.Equal(t, fmt.Sprint(a) == fmt.Sprint(b), hashForests(a) == hashForests(b), "%v %v", a, b)
	})
}

// TestFoldsLikeRanksLooksAtTrees requires that FoldsLikeRanks compares the structures of the
// tree over nodes and of the tree over ranks, and ignores the order in which the steps of the
// trees are listed.
func TestFoldsLikeRanksLooksAtTrees(t *testing.T) {
	leaf := func(i int) []sharding.Node { return []sharding.Node{sharding.Leaf(i)} }
	require.True(t, FoldsLikeRanks([][]sharding.Node{leaf(0), leaf(1), leaf(2), leaf(3)}))
	require.False(t, FoldsLikeRanks([][]sharding.Node{leaf(1), leaf(0), leaf(2), leaf(3)}), "FoldsLikeRanks must return false if the leaves of a pair are swapped")
	require.False(t, FoldsLikeRanks([][]sharding.Node{leaf(0), leaf(2), leaf(1), leaf(3)}), "FoldsLikeRanks must return false if the pairs are different")
	require.False(t, FoldsLikeRanks([][]sharding.Node{leaf(0), leaf(1), leaf(2), leaf(3), leaf(4)}), "FoldsLikeRanks must return false for five ranks, whose aligned tree is ((0 1)(2 3)) 4")
	require.False(t, FoldsLikeRanks([][]sharding.Node{{sharding.Leaf(0), sharding.Leaf(1)}, leaf(2)}), "FoldsLikeRanks must return false if rank 0 has two nodes")
	require.False(t, FoldsLikeRanks([][]sharding.Node{leaf(0), leaf(0)}), "FoldsLikeRanks must return false if two ranks have the same node")
}
