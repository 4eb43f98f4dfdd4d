package forest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

func TestTreesGoFromSubtaskToSubtask(t *testing.T) {
	trees := []tree.Tree{
		{Nodes: []tree.Node{{Value: 0.25, Cover: 3, Count: 2}}, Weight: 1},
		{
			Nodes: []tree.Node{
				{Feature: 3, Left: 1, Right: 2, Set: 0, SetWords: 2, Flags: tree.Categorical | tree.SetRight, Gain: 0.5, Cover: 9, Count: 9},
				{Value: 1}, {Value: -1, Threshold: 2},
			},
			Sets: []uint32{7, 1 << 31}, Values: []float64{0.5, 0.5, 1, 0, 0, 1}, Weight: 1,
		},
		{Nodes: []tree.Node{{Value: 1}}, Weight: 1},
	}
	// Of two subtasks the first grew trees 0 and 2.
	sent := appendTree(appendTree(nil, &trees[0]), &trees[2])
	sent = appendTree(sent, &trees[1])
	got, err := inOrder(sent, 3, 2)
	require.NoError(t, err)
	require.Equal(t, trees, got)
	for cut := range sent {
		_, err := inOrder(sent[:cut], 3, 2)
		require.ErrorIs(t, err, errTrees)
	}
	_, err = inOrder(append(sent, 0), 3, 2)
	require.ErrorIs(t, err, errTrees)
}
