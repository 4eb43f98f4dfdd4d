package algorithm_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// moving has the collectives whose algorithms registry_moving.go lists.
var moving = []program.Collective{
	program.Broadcast, program.Reduce, program.Gather, program.AllGather, program.Scatter,
	program.AllToAll, program.Barrier, program.Scan, program.Exscan,
}

// ranksToTest returns the numbers of ranks to test: all up to 33, or up to 130 in a soak test.
func ranksToTest() []int {
	most := 33
	if testsize.Soak {
		most = 130
	}
	var p []int
	for n := 1; n <= most; n++ {
		p = append(p, n)
	}
	return p
}

// rootsToTest returns all roots for up to 12 ranks (33 in a soak test). For more ranks it
// returns the first two, the middle and the last rank, and the rank after the pairs of the fold
// tree.
func rootsToTest(c program.Collective, p int) []int {
	if !c.Rooted() {
		return []int{0}
	}
	all := 12
	if testsize.Soak {
		all = 33
	}
	var roots []int
	if p > all {
		q := 1
		for 2*q <= p {
			q *= 2
		}
		roots = []int{0, 1, p / 2, min(2*(p-q), p-1), p - 1}
		slices.Sort(roots)
		return slices.Compact(roots)
	}
	for r := range p {
		roots = append(roots, r)
	}
	return roots
}

// TestMovingAlgorithms proves every algorithm for every number of ranks and every root to test,
// with chunks of even and uneven lengths.
func TestMovingAlgorithms(t *testing.T) {
	for _, c := range moving {
		require.NotEmpty(t, algorithm.For(c), c)
		for i, a := range algorithm.For(c) {
			t.Run(c.String()+"/"+a.Name, func(t *testing.T) {
				t.Parallel()
				for _, p := range ranksToTest() {
					for _, root := range rootsToTest(c, p) {
						pr := algorithm.Params{P: p, Root: root}
						if a.Supports(pr) != nil {
							require.Positive(t, i, "the first algorithm must support all parameters")
							continue
						}
						require.NoError(t, check.Algorithm(a, pr))
					}
				}
			})
		}
	}
}

// TestLinearReduceOfForests proves the linear Reduce for forests at every root: with several
// nodes per rank, with ranks without nodes, and with nodes that are not in rank order.
func TestLinearReduceOfForests(t *testing.T) {
	a, err := algorithm.Find(program.Reduce, "linear")
	require.NoError(t, err)
	for p := 1; p <= 9; p++ {
		for _, shards := range []int{1, p, 2*p + 3, 40} {
			forest := make([][]sharding.Node, p)
			for r := range p {
				forest[r] = sharding.Cover(sharding.Split(shards, p, r))
			}
			backwards := slices.Clone(forest)
			slices.Reverse(backwards)
			for root := range p {
				require.NoError(t, check.Algorithm(a, algorithm.Params{P: p, Root: root, Forest: forest}))
				require.NoError(t, check.Algorithm(a, algorithm.Params{P: p, Root: root, Forest: backwards}))
			}
		}
	}
}

// TestMovingRefusals requires that algorithms refuse parameters that they do not support.
func TestMovingRefusals(t *testing.T) {
	leaf := func(shard int) []sharding.Node { return []sharding.Node{sharding.Leaf(shard)} }
	for _, x := range []struct {
		of   program.Collective
		name string
		pr   algorithm.Params
		want string
	}{
		{program.AllGather, "recursive-doubling", algorithm.Params{P: 6}, "6 ranks are not a power of two"},
		{program.Broadcast, "binomial", algorithm.Params{P: 4, Root: 4}, "root 4 among 4 ranks"},
		{program.Scan, "chain", algorithm.Params{}, "among 0 ranks"},
		{program.Gather, "linear", algorithm.Params{P: 1, Forest: [][]sharding.Node{leaf(0)}}, "not a forest"},
		{program.Reduce, "binomial", algorithm.Params{P: 2, Forest: [][]sharding.Node{leaf(1), leaf(0)}}, "one node"},
		{program.Reduce, "linear", algorithm.Params{P: 2, Forest: [][]sharding.Node{{}, {}}}, "no rank brings a node"},
		{program.Reduce, "linear", algorithm.Params{P: 2, Forest: [][]sharding.Node{leaf(3), leaf(3)}}, "reduce: "},
	} {
		a, err := algorithm.Find(x.of, x.name)
		require.NoError(t, err)
		require.ErrorContains(t, a.Supports(x.pr), x.want)
	}
}
