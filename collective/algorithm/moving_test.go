package algorithm_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
)

// moving are the collectives of registry_moving.go.
var moving = []program.Collective{
	program.Broadcast, program.Reduce, program.Gather, program.AllGather, program.Scatter,
	program.AllToAll, program.Barrier, program.Scan, program.Exscan,
}

// ranksToTest are the numbers of ranks: all up to 33, and up to 130 in a soak.
func ranksToTest() []int {
	most := 33
	if soakMoving {
		most = 130
	}
	var p []int
	for n := 1; n <= most; n++ {
		p = append(p, n)
	}
	return p
}

// rootsToTest are all roots up to 33 ranks, then the ends, the middle, and the rank
// behind the pairs of the fold tree.
func rootsToTest(c program.Collective, p int) []int {
	if !c.Rooted() {
		return []int{0}
	}
	var roots []int
	if p > 33 {
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

// Every algorithm is proved for every number of ranks and every root, with chunks
// of even and uneven lengths.
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
							require.Positive(t, i, "the first algorithm serves everything")
							continue
						}
						require.NoError(t, check.Algorithm(a, pr))
					}
				}
			})
		}
	}
}
