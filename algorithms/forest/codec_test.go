package forest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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
	// The first of two subtasks grew the trees 0 and 2.
	sent := appendTree(appendTree(nil, &trees[0]), &trees[2])
	sent = appendTree(sent, &trees[1])
	memory, seen := tree.Tree{}, 0
	require.NoError(t, eachTree(sent, 3, 2, &memory, func(i int, got *tree.Tree) error {
		require.Equal(t, seen, i)
		require.Equal(t, &trees[i], got)
		seen++
		return nil
	}))
	require.Equal(t, 3, seen)
	never := func(int, *tree.Tree) error { return errors.New("a tree was read") }
	for cut := range sent {
		require.ErrorIs(t, eachTree(sent[:cut], 3, 2, &memory, never), errTrees)
	}
	require.ErrorIs(t, eachTree(append(sent, 0), 3, 2, &memory, never), errTrees)
}

// TestTreesThatAreDamaged requires an error for every truncated encoding of a tree, even if its
// length prefix is correct.
func TestTreesThatAreDamaged(t *testing.T) {
	all := tree.Tree{
		Nodes: []tree.Node{
			{Feature: 300, Left: 5, Right: 2, Set: 1, SetWords: 1 << 20, Flags: tree.Categorical, Threshold: math.Inf(-1), Value: -0.1, Gain: 1e300, Cover: 1 << 40, Count: 1 << 50},
			{Left: math.MaxInt32, Right: -7, Threshold: 0.1}, {Value: math.Copysign(0, -1), Cover: 3, Count: 1},
		},
		Sets: []uint32{0, math.MaxUint32}, Values: []float64{1. / 3, 0, 1}, Weight: 1,
	}
	sent := appendTree(nil, &all)
	var got tree.Tree
	rest, err := readTree(append(sent, 9), &got)
	require.NoError(t, err)
	require.Equal(t, []byte{9}, rest)
	require.Equal(t, fmt.Sprintf("%v", all), fmt.Sprintf("%v", got)) // distinguishes −0 from 0
	for n := range len(sent) - 8 {
		cut := append(binary.LittleEndian.AppendUint64(nil, uint64(n)), sent[8:8+n]...)
		_, err := readTree(cut, &got)
		require.ErrorIs(t, err, errTrees)
	}
	_, err = readTree(append(binary.LittleEndian.AppendUint64(nil, 11), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0), &got)
	require.ErrorIs(t, err, errTrees)
}
