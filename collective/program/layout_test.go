package program_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	. "github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
	"pgregory.net/rapid"
)

func TestEvenChunks(t *testing.T) {
	require.Equal(t, []int{0, 3, 6, 8, 10}, Even(10, 4).Out)
	rapid.Check(t, func(t *rapid.T) {
		n, chunks := rapid.IntRange(0, 1000).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "chunks")
		l := Even(n, chunks)
		require.NoError(t, l.Check(chunks))
		require.Equal(t, l.In, l.Out)
		require.Equal(t, n, l.Out[chunks])
		longer := 0
		for c := range chunks {
			extra := l.Len(Chunk(Out, 0, c)) - n/chunks
			require.True(t, extra == 0 || extra == 1 && longer == c, "the longer chunks must come first")
			longer += extra
		}
		require.Equal(t, n%chunks, longer)
	})
}

func TestChunksOfAnyLength(t *testing.T) {
	l := Blocks([]int{2, 0, 5})
	require.NoError(t, l.Check(3))
	require.Equal(t, []int{0, 2, 2, 7}, l.In)
	require.Equal(t, 5, l.Len(Chunk(Scratch, 3, 2)))
	require.Equal(t, 2, l.Len(Span(In, 0, 0, 2)))
	require.Equal(t, 0, l.Len(Chunk(Out, 0, 1)))

	room := sharding.Range{Lo: 1, Hi: 3}
	require.Equal(t, 5, l.Size(Out, room))
	require.Equal(t, sharding.Range{Lo: 0, Hi: 5}, l.Elements(Chunk(Scratch, 0, 2), room), "the buffer must begin with chunk 1, which is empty")
	require.Equal(t, sharding.Range{Lo: 2, Hi: 7}, l.Elements(Chunk(Out, 0, 2), sharding.Range{Lo: 0, Hi: 3}))
	require.Zero(t, l.Size(In, sharding.Range{}))
	require.Zero(t, l.Size(In, sharding.Range{Lo: 2, Hi: 1}))
}

func TestExchangesAreCutOnBothSides(t *testing.T) {
	l := Exchange([]int{1, 2, 3}, []int{4, 0, 6})
	require.NoError(t, l.Check(3))
	require.Equal(t, 3, l.Len(Chunk(In, 0, 2)))
	require.Equal(t, 6, l.Len(Chunk(Out, 0, 2)))
	require.Equal(t, 4, l.Len(Chunk(Scratch, 1, 0)), "scratch must be divided like the output")
	require.Equal(t, 6, l.Size(In, sharding.Range{Lo: 0, Hi: 3}))
	require.Equal(t, 10, l.Size(Out, sharding.Range{Lo: 0, Hi: 3}))
}

func TestBrokenLayoutsAreRefused(t *testing.T) {
	require.ErrorContains(t, Even(9, 4).Check(3), "a layout of 4 chunks for a program of 3")
	require.ErrorContains(t, Blocks([]int{3, -1}).Check(2), "chunk 1 has -1 elements")
	require.Error(t, Layout{}.Check(1))
	require.Error(t, Layout{In: []int{0, 4}, Out: []int{1, 4}}.Check(1), "offsets must begin at 0")
	require.ErrorContains(t, Exchange([]int{1}, []int{-2}).Check(1), "chunk 0 has -2 elements")
}

func TestRoom(t *testing.T) {
	p := direct(3, 1)
	p.In.Lo = 1
	require.Equal(t, sharding.Range{Lo: 1, Hi: 3}, p.Room(Chunk(In, 0, 2)))
	require.Equal(t, sharding.Range{Lo: 0, Hi: 3}, p.Room(Chunk(Out, 0, 0)))
	require.Equal(t, sharding.Range{Lo: 1, Hi: 2}, p.Room(Chunk(Scratch, 1, 1)))
}
