package grow

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// TestBytes requires that the number of sent bytes that a run reports equals a formula.
// Histograms are computed for the root, and for the smaller child of each node that has a child
// to search. Each of p subtasks sends all of a histogram except the block that it owns, on
// average (p−1)/p of the bytes. It sends one record for each searched node to each other
// subtask.
func TestBytes(t *testing.T) {
	const depth, width, rounds = 4, 2, 2
	for _, p := range []int{1, 2, 3, 5} {
		rng := rand.New(rand.NewPCG(11, 11))
		params := Params{MaxDepth: depth, Lambda: 1}
		x, kinds := randomProblem(rng, 200)
		x.trees, x.bag, x.tight = 1, x.bag[:1], false
		x.bag[0], x.g, x.h = nil, x.g[:1], x.h[:1]
		l := x.layout(rng, kinds)
		got, result := x.run(t, params, l, p, rounds)
		histograms, looked := int64(0), int64(0)
		var walk func(n int32, d int)
		walk = func(n int32, d int) {
			v := &got.trees[0].Nodes[n]
			if n == 0 {
				histograms, looked = 1, 1
			}
			if v.Left == 0 {
				return
			}
			children := [2]*tree.Node{&got.trees[0].Nodes[v.Left], &got.trees[0].Nodes[v.Right]}
			some := int64(0)
			for _, c := range children {
				if d+1 < depth && c.Count > 1 {
					some++
				}
			}
			looked += some
			histograms += min(some, 1)
			walk(v.Left, d+1)
			walk(v.Right, d+1)
		}
		walk(0, 0)
		require.Greater(t, histograms, int64(3))
		require.NotContains(t, result.Plan.Text(), "depends on parallelism")
		others := int64(p - 1)
		bytes, calls := map[string]int64{}, map[string]int64{}
		for _, s := range result.Report.Queues[0].Stages {
			bytes[s.Name] = s.Bytes
			calls[s.Name] = s.Calls
		}
		passes := calls[`AllGather "grow.found"`] / int64(p)
		require.Equal(t, rounds*8*others*histograms*int64(l.Slots)*width, bytes[`ReduceScatter "grow.sums"`])
		// AllGather first sends lengths: one word to each other subtask.
		require.Equal(t, 8*others*int64(p)*(rounds*looked*(recordWords+4+width)+passes), bytes[`AllGather "grow.found"`])
		require.LessOrEqual(t, passes, int64(rounds*(depth+2)))
		// AllReduce sends the number of rows in the left child of each split, and the sums of
		// the root.
		counted := int64(rounds) * (int64(len(got.trees[0].Nodes)-1)/2 + width + 1)
		require.Equal(t, 8*others*counted, bytes[`AllReduceSend "grow.counts"`])
		require.Equal(t, 8*others*counted, bytes[`AllReduceRecv "grow.counts"`])
	}
}
