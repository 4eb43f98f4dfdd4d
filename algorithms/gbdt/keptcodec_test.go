package gbdt

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/grow"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// keptTrees returns the kept trees of a training with two outputs and two rounds.
func keptTrees() *boosted {
	leaf := func(v float64) tree.Tree {
		return tree.Tree{Nodes: []tree.Node{{Value: v, Cover: 3, Count: 2}}, Weight: 1}
	}
	split := tree.Tree{Nodes: []tree.Node{
		{Feature: 3, Left: 1, Right: 2, SetWords: 2, Flags: tree.Categorical | tree.SetRight, Gain: 0.5, Cover: 9, Count: 9},
		{Value: -0.1, Cover: 4, Count: 4}, {Value: math.Copysign(0, -1), Cover: 5, Count: 5},
	}, Sets: []uint32{7, 1 << 31}, Weight: 1}
	b := &boosted{base: []float64{0.5, math.Inf(-1)}, most: 2.5, trees: []tree.Tree{leaf(1), split, split, leaf(-2)}}
	for i := range b.trees {
		b.trees[i].Output = int32(i % 2)
	}
	return b
}

func TestBoostedTreesAreKept(t *testing.T) {
	for _, b := range []*boosted{{}, {base: []float64{1}, most: 1}, keptTrees()} {
		data, err := boostedCodec{}.Append([]byte("before"), b)
		require.NoError(t, err)
		require.Equal(t, "before", string(data[:6]))
		back, err := boostedCodec{}.Decode(data[6:])
		require.NoError(t, err)
		require.Equal(t, b, back)
		again, err := boostedCodec{}.Append(nil, back)
		require.NoError(t, err)
		require.Equal(t, data[6:], again)
	}
}

// TestBoostedTreesThatAreDamaged requires an error for bytes that do not end after a whole
// round.
func TestBoostedTreesThatAreDamaged(t *testing.T) {
	b := keptTrees()
	data, err := boostedCodec{}.Append(nil, b)
	require.NoError(t, err)
	whole := 4 + 8*2 + 8 // the length of the encoding before the first tree
	rounds := 0
	for n := range data {
		back, err := boostedCodec{}.Decode(data[:n])
		if err == nil {
			require.Zero(t, len(back.trees)%2)
			require.GreaterOrEqual(t, n, whole)
			rounds++
		}
	}
	require.Equal(t, 2, rounds, "of all prefixes, only those with no round and with one round must be accepted")
	few := &boosted{trees: b.trees}
	data, err = boostedCodec{}.Append(nil, few)
	require.NoError(t, err)
	_, err = boostedCodec{}.Decode(data)
	require.ErrorContains(t, err, "4 trees for 0 outputs")
	_, err = boostedCodec{}.Decode(binary.LittleEndian.AppendUint32(nil, math.MaxUint32))
	require.ErrorIs(t, err, errBoosted)
}

// FuzzBoostedTrees requires that arbitrary bytes give an error, or trees that can be encoded
// and decoded again. For each decoded tree the walker must either return an error or route
// rows.
func FuzzBoostedTrees(f *testing.F) {
	rows := bins.Dense([]float64{1, 2, 3, 4, 5, 6}, 3, 2, bins.Options{})
	for _, b := range []*boosted{{}, keptTrees()} {
		data, err := boostedCodec{}.Append(nil, b)
		require.NoError(f, err)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	threshold := float64(rows.Layout.Features[0].Cuts[0])
	grows, err := boostedCodec{}.Append(nil, &boosted{base: []float64{0}, trees: []tree.Tree{{Nodes: []tree.Node{{Left: 1, Right: 2, Threshold: threshold}, {}, {}}}}})
	require.NoError(f, err)
	f.Add(grows)
	f.Fuzz(func(t *testing.T, src []byte) {
		kept := bytes.Clone(src)
		b, err := boostedCodec{}.Decode(src)
		require.Equal(t, kept, src)
		if err != nil {
			return
		}
		first, err := boostedCodec{}.Append(nil, b)
		require.NoError(t, err)
		back, err := boostedCodec{}.Decode(first)
		require.NoError(t, err)
		second, err := boostedCodec{}.Append(nil, back)
		require.NoError(t, err)
		require.Equal(t, first, second)
		walker := grow.NewWalker(rows.Layout)
		for i := range b.trees {
			if walker.Open(&b.trees[i]) != nil {
				continue
			}
			for _, leaf := range walker.Route(rows, nil) {
				require.True(t, b.trees[i].Nodes[leaf].Leaf())
			}
		}
	})
}
