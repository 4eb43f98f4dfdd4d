package treecode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// odd returns a tree whose parts do not agree with each other, with unusual numbers such as
// NaN, −0 and the largest integers.
func odd() tree.Tree {
	return tree.Tree{
		Nodes: []tree.Node{
			{Feature: 300, Left: 5, Right: 2, Set: 1, SetWords: 1 << 20, Flags: tree.Categorical, Threshold: math.Inf(-1), Value: -0.1, Gain: 1e300, Cover: 1 << 40, Count: 1 << 50},
			{Left: math.MaxInt32, Right: -7, Threshold: 0.1}, {Value: math.Copysign(0, -1), Cover: 3, Count: 1}, {Value: math.NaN()},
		},
		Sets: []uint32{0, math.MaxUint32}, Values: []float64{1. / 3, 0, 1}, Weight: 1,
	}
}

func TestTreesAreReadAsTheyWere(t *testing.T) {
	want := odd()
	data := Append([]byte("before"), &want)
	got := tree.Tree{Nodes: make([]tree.Node, 9), Values: make([]float64, 1)} // Read must overwrite the contents
	rest, err := Read(append(data[6:], 9), &got)
	require.NoError(t, err)
	require.Equal(t, []byte{9}, rest)
	require.Equal(t, fmt.Sprintf("%v", want), fmt.Sprintf("%v", got)) // the formatted text distinguishes −0 from 0
	text, rest, err := Cut(append(data[6:], 9))
	require.NoError(t, err)
	require.Equal(t, []byte{9}, rest)
	require.Equal(t, data[14:], text)
}

// TestTreesThatAreCutShort requires that Read returns an error for a tree with too few bytes,
// even if the length at its beginning is changed accordingly, and for a tree with too many
// bytes.
func TestTreesThatAreCutShort(t *testing.T) {
	from := odd()
	data := Append(nil, &from)
	var got tree.Tree
	for n := range data {
		_, err := Read(data[:n], &got)
		require.ErrorIs(t, err, ErrCut)
	}
	for n := range len(data) - 8 {
		_, err := Read(append(binary.LittleEndian.AppendUint64(nil, uint64(n)), data[8:8+n]...), &got)
		require.ErrorIs(t, err, ErrCut)
	}
	longer := append(bytes.Clone(data), 0)
	binary.LittleEndian.PutUint64(longer, uint64(len(data)-7))
	_, err := Read(longer, &got)
	require.ErrorIs(t, err, ErrCut)
}

// FuzzRead requires that Read, for any bytes, returns either an error or a tree that can be
// encoded and decoded again.
func FuzzRead(f *testing.F) {
	from := odd()
	f.Add(Append(nil, &from))
	f.Add(binary.LittleEndian.AppendUint64(nil, math.MaxUint64))
	f.Add(append(binary.LittleEndian.AppendUint64(nil, 11), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0))
	f.Fuzz(func(t *testing.T, src []byte) {
		var got, back tree.Tree
		rest, err := Read(src, &got)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(rest), len(src)-8)
		first := Append(nil, &got)
		rest, err = Read(first, &back)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, first, Append(nil, &back))
	})
}
