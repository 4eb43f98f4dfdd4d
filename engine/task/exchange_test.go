package task

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// referenceHash hashes an integer key as documented: the tag 2 and eight little-endian bytes.
func referenceHash(k int64) uint64 {
	return xxh3.Hash(binary.LittleEndian.AppendUint64([]byte{2}, uint64(k)))
}

// TestExchanges compares every partitioner with the reference, at several parallelisms, numbers
// of shards and batch sizes.
func TestExchanges(t *testing.T) {
	for _, how := range []string{"forward", "rebalance", "hash", "range", "custom"} {
		for _, shards := range []int{8, 128} {
			g := parseGraph(shards, fmt.Sprintf(`
				a = source rows=600
				b = source rows=40
				c = union a/%[1]s b
				d = number c
				e = tap d`, how))
			want := g.reference()
			for _, p := range testsize.Raced([]int{1, 2, 3, 8}, []int{3, 8}) {
				for _, batch := range testsize.Raced([]int{1, 7, 1024}, []int{7}) {
					t.Run(fmt.Sprintf("%s/S%d/p%d/batch%d", how, shards, p, batch), func(t *testing.T) {
						got := g.run(t, context.Background(), p, Env{BatchRows: batch}, hooks{})
						require.NoError(t, got.err)
						require.Equal(t, want, got.taps)
					})
				}
			}
		}
	}
}

// TestGather requires that a single subtask gets all shards, in order.
func TestGather(t *testing.T) {
	g := parseGraph(8, `
		a = source rows=100
		b = number a single=1
		c = number b
		d = tap c`)
	for _, p := range []int{1, 3, 8} {
		got := g.run(t, context.Background(), p, Env{BatchRows: 7}, hooks{})
		require.NoError(t, got.err)
		require.Equal(t, g.reference(), got.taps)
	}
}

// TestRandomGraphs compares the results of random graphs with the reference, with and without
// spilling.
func TestRandomGraphs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := parseGraph(rapid.SampledFrom([]int{1, 4, 16}).Draw(rt, "shards"), randomGraph(rt))
		p := rapid.IntRange(1, min(g.Shards, 5)).Draw(rt, "p")
		env := Env{
			BatchRows:    rapid.SampledFrom([]int{1, 7, 1024}).Draw(rt, "batch"),
			Credits:      rapid.SampledFrom([]int{1, 8}).Draw(rt, "credits"),
			MemoryBudget: rapid.SampledFrom([]int64{1 << 10, 1 << 30}).Draw(rt, "budget"),
		}
		if env.MemoryBudget < 1<<20 {
			for _, n := range g.Nodes { // a side input cannot spill
				for _, in := range n.Inputs {
					if in.Role != 0 {
						env.MemoryBudget = 1 << 30
					}
				}
			}
		}
		got := g.run(t, context.Background(), p, env, hooks{})
		require.NoError(rt, got.err)
		require.Equal(rt, g.reference(), orEmpty(got.taps))
	})
}

// orEmpty returns an empty map instead of nil.
func orEmpty[M ~map[K]V, K comparable, V any](m M) M {
	if m == nil {
		return make(M)
	}
	return m
}

// randomGraph returns the text of a graph in which each node may be an input of all later nodes.
func randomGraph(rt *rapid.T) string {
	text := ""
	names := []string{}
	input := func() string {
		how := rapid.SampledFrom([]string{"", "", "", "/hash", "/rebalance", "/range", "/custom"}).Draw(rt, "how")
		return rapid.SampledFrom(names).Draw(rt, "from") + how
	}
	n := rapid.IntRange(2, 9).Draw(rt, "nodes")
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		op := rapid.SampledFrom([]string{"source", "map", "filter", "twice", "union", "addside", "number", "last"}).Draw(rt, "op")
		line := ""
		switch {
		case op == "source" || len(names) == 0:
			line = fmt.Sprintf("source rows=%d", rapid.IntRange(0, 90).Draw(rt, "rows"))
		case op == "union":
			line = fmt.Sprintf("union %s %s", input(), input())
		case op == "addside":
			line = fmt.Sprintf("addside %s %s/side", input(), rapid.SampledFrom(names).Draw(rt, "side"))
		default:
			line = fmt.Sprintf("%s %s", op, input())
		}
		if op != "source" && len(names) > 0 && rapid.IntRange(0, 9).Draw(rt, "single") == 0 {
			line += " single=1"
		}
		text += fmt.Sprintf("%s = %s\n", name, line)
		names = append(names, name)
	}
	for _, name := range names {
		text += fmt.Sprintf("tap-%s = tap %s\n", name, name)
	}
	return text
}
