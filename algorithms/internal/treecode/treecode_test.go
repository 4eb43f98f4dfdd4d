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

// odd returns an inconsistent tree with every kind of number.
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
	got := tree.Tree{Nodes: make([]tree.Node, 9), Values: make([]float64, 1)} // used memory
	rest, err := Read(append(data[6:], 9), &got)
	require.NoError(t, err)
	require.Equal(t, []byte{9}, rest)
	require.Equal(t, fmt.Sprintf("%v", want), fmt.Sprintf("%v", got)) // text distinguishes −0 from 0
	text, rest, err := Cut(append(data[6:], 9))
	require.NoError(t, err)
	require.Equal(t, []byte{9}, rest)
	require.Equal(t, data[14:], text)
}

// Bytes that end too early are an error, also if their length agrees with that. Bytes that end
// too late are an error too.
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

// FuzzRead: any bytes are an error or a tree that can be written and read again.
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
