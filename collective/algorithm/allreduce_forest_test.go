package algorithm_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// likeRanks returns a forest with one node per rank whose aligned tree is the fold tree over p
// ranks. The ranks that are folded in pairs first have leaves, and each other rank has a node
// of two shards.
func likeRanks(p int) [][]sharding.Node {
	q := 1
	for 2*q <= p {
		q *= 2
	}
	forest := make([][]sharding.Node, p)
	for r := range p {
		n := sharding.Leaf(r)
		if r >= 2*(p-q) {
			n = sharding.Node{Level: 1, Index: r - (p - q)}
		}
		forest[r] = []sharding.Node{n}
	}
	return forest
}

// covers returns the forests of p ranks over the given number of shards, which are divided
// evenly among the ranks.
func covers(p, shards int) [][]sharding.Node {
	forest := make([][]sharding.Node, p)
	for r := range forest {
		forest[r] = sharding.Cover(sharding.Split(shards, p, r))
	}
	return forest
}

func TestForestsOfOneNodeARank(t *testing.T) {
	eachReducing(t, func(t *testing.T, a *algorithm.Algorithm) {
		for p := 1; p <= upTo(20); p++ {
			pr := algorithm.Params{P: p, Forest: likeRanks(p)}
			require.True(t, algorithm.FoldsLikeRanks(pr.Forest))
			err := a.Supports(pr)
			if a.Forests == algorithm.WholeOnly {
				require.ErrorContains(t, err, "not a forest")
				continue
			}
			if !a.Canonical(p) {
				require.ErrorContains(t, err, "aligned tree")
				continue
			}
			require.NoError(t, err)
			require.NoError(t, check.Algorithm(a, pr))
		}
	})
}

func TestAnyForest(t *testing.T) {
	eachReducing(t, func(t *testing.T, a *algorithm.Algorithm) {
		if a.Forests != algorithm.AnyForest {
			require.Error(t, a.Supports(algorithm.Params{P: 3, Forest: covers(3, 16)}))
			return
		}
		for _, p := range []int{1, 2, 3, 5, 6, 7, 12} {
			require.NoError(t, check.Algorithm(a, algorithm.Params{P: p, Forest: covers(p, 16)}))
		}
		// The nodes of a tree are assigned to ranks at random, so that the nodes of ranks
		// interleave, and some ranks have no node.
		rapid.Check(t, func(t *rapid.T) {
			p := rapid.IntRange(1, 7).Draw(t, "p")
			pr := algorithm.Params{P: p, Forest: make([][]sharding.Node, p)}
			for r := range pr.Forest {
				pr.Forest[r] = []sharding.Node{}
			}
			bounds := rapid.SliceOfNDistinct(rapid.IntRange(1, 40), 1, 6, rapid.ID).Draw(t, "bounds")
			slices.Sort(bounds)
			for i, hi := range bounds {
				lo := 0
				if i > 0 {
					lo = bounds[i-1]
				}
				for _, n := range sharding.Cover(sharding.Range{Lo: lo, Hi: hi}) {
					if rapid.IntRange(0, 4).Draw(t, "absent") > 0 {
						r := rapid.IntRange(0, p-1).Draw(t, "rank")
						pr.Forest[r] = append(pr.Forest[r], n)
					}
				}
			}
			empty := !slices.ContainsFunc(pr.Forest, func(f []sharding.Node) bool { return len(f) > 0 })
			if empty {
				require.ErrorContains(t, a.Supports(pr), "no rank brings a node")
				return
			}
			require.NoError(t, check.Algorithm(a, pr))
		})
	})
}

func TestForestsThatOverlapAreRefused(t *testing.T) {
	for _, name := range []string{"direct", "linear", "allgather-reduce"} {
		a := find(t, program.AllReduce, name)
		err := a.Supports(algorithm.Params{P: 2, Forest: [][]sharding.Node{{{Level: 2, Index: 0}}, {sharding.Leaf(3)}}})
		require.ErrorContains(t, err, "disjoint")
	}
}
