package algorithm_test

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// reducing returns the algorithms of registry_allreduce.go.
func reducing() []*algorithm.Algorithm {
	return append(algorithm.For(program.AllReduce), algorithm.For(program.ReduceScatter)...)
}

// upTo returns the largest number of ranks to test: the parameter fast, or 130 in a soak test.
func upTo(fast int) int {
	if testsize.Soak {
		return 130
	}
	return fast
}

func eachReducing(t *testing.T, test func(t *testing.T, a *algorithm.Algorithm)) {
	for _, a := range reducing() {
		t.Run(a.Collective.String()+"/"+a.Name, func(t *testing.T) {
			t.Parallel()
			test(t, a)
		})
	}
}

func find(t *testing.T, c program.Collective, name string) *algorithm.Algorithm {
	a, err := algorithm.Find(c, name)
	require.NoError(t, err)
	return a
}

func TestReducingAlgorithmsAreProved(t *testing.T) {
	eachReducing(t, func(t *testing.T, a *algorithm.Algorithm) {
		for p := 1; p <= upTo(33); p++ {
			pr := algorithm.Params{P: p}
			if err := a.Supports(pr); err != nil {
				require.ErrorContains(t, err, "prime")
				continue
			}
			require.NoError(t, check.Algorithm(a, pr))
		}
	})
}

// TestManyRanks proves algorithms for larger numbers of ranks, if the proofs fit in memory.
func TestManyRanks(t *testing.T) {
	counts := map[string][]int{
		"recursive-doubling": {1000, 1023}, "binomial": {1000, 1023}, "double-tree": {1000, 1023},
		"linear": {257}, "hierarchical": {258}, "halving-doubling": {255},
	}
	if testsize.Soak {
		counts = map[string][]int{
			"recursive-doubling": {1000, 2047, 4095, 4096}, "binomial": {1000, 2047, 4095, 4096},
			"double-tree": {1000, 2047, 4095, 4096}, "linear": {1000, 4096}, "hierarchical": {1000, 4096},
			"halving-doubling": {255, 256, 600}, "binary-blocks": {255, 256, 600}, "halving": {255, 256, 600},
			"torus": {255, 256, 600}, "blueconnect": {255, 256, 600}, "ring": {255, 256}, "direct": {255, 256},
		}
	}
	eachReducing(t, func(t *testing.T, a *algorithm.Algorithm) {
		for _, p := range counts[a.Name] {
			require.NoError(t, check.Algorithm(a, algorithm.Params{P: p}))
		}
	})
}

// TestReducingClaimsAreExact requires that an algorithm claims every property that its programs
// have for a number of ranks. Algorithms with dimensions are not tested, since their default
// dimensions may have a property by chance.
func TestReducingClaimsAreExact(t *testing.T) {
	byChance := map[string]bool{"torus": true, "hierarchical": true, "blueconnect": true}
	eachReducing(t, func(t *testing.T, a *algorithm.Algorithm) {
		if byChance[a.Name] {
			return
		}
		for p := 1; p <= upTo(33); p++ {
			pr := algorithm.Params{P: p}
			programs, err := check.Generate(a, pr)
			require.NoError(t, err)
			report, err := check.Inspect(programs, check.Options{})
			require.NoError(t, err)
			require.Equal(t, report.Canonical, a.Canonical(p), "canonical for %d ranks", p)
			require.Equal(t, report.RankOrder, a.RankOrder(p), "rank order for %d ranks", p)
		}
	})
}

// TestAlignedTreesThatAreCanonical requires that the binomial algorithm claims the canonical
// tree for p ranks if and only if the aligned tree over p leaves is the fold tree. This holds
// for 21 of the 63 numbers from 2 to 64.
func TestAlignedTreesThatAreCanonical(t *testing.T) {
	a := find(t, program.AllReduce, "binomial")
	n := 0
	for p := 2; p <= 64; p++ {
		leaves := make([][]sharding.Node, p)
		for r := range leaves {
			leaves[r] = []sharding.Node{sharding.Leaf(r)}
		}
		require.Equal(t, algorithm.FoldsLikeRanks(leaves), a.Canonical(p), p)
		if a.Canonical(p) {
			n++
		}
	}
	require.Equal(t, 21, n)
}

// TestCostsAgreeWithTheLiterature compares two costs with the literature: the number of
// elements that the busiest rank sends, divided by the length of the data, and the number of
// steps. In each case the number of ranks divides the length of the data, and is one for which
// the literature gives the costs.
func TestCostsAgreeWithTheLiterature(t *testing.T) {
	optimal := func(p int) float64 { return 2 * float64(p-1) / float64(p) }
	for _, x := range []struct {
		name  string
		p     int
		dims  []int
		steps int
		sent  float64
	}{
		{"ring", 6, nil, 10, optimal(6)},
		{"ring", 31, nil, 60, optimal(31)},
		{"direct", 13, nil, 2, optimal(13)},
		{"recursive-doubling", 8, nil, 3, 3},
		{"recursive-doubling", 24, nil, 5, 5},
		{"recursive-doubling", 31, nil, 6, 5},
		{"halving-doubling", 8, nil, 6, optimal(8)},
		{"halving-doubling", 32, nil, 10, optimal(32)},
		{"halving-doubling", 24, nil, 10, optimal(16) + 1},
		{"binary-blocks", 32, nil, 10, optimal(32)},
		{"binary-blocks", 24, nil, 8, optimal(16) + 1./16},
		{"double-tree", 24, nil, 10, 2},
		{"double-tree", 31, nil, 10, 2},
		{"torus", 32, []int{4, 8}, 20, optimal(32)},
		{"blueconnect", 30, []int{2, 3, 5}, 6, optimal(30)},
		{"hierarchical", 32, []int{8}, 22, 3*7./8 + 2*3./4},
		{"linear", 5, nil, 2, 4},
		{"binomial", 16, nil, 8, 4},
		{"allgather-reduce", 7, nil, 1, 6},
	} {
		pr := algorithm.Params{P: x.p, Dims: x.dims}
		a := find(t, program.AllReduce, x.name)
		require.NoError(t, a.Supports(pr))
		cost := a.Cost(pr)
		require.Equal(t, x.steps, cost.Steps, "%s among %d", x.name, x.p)
		const n = 720720 // divisible by 1 to 16
		chunks := a.Generate(pr, 0).Chunks
		busiest := 0
		for r := range x.p {
			busiest = max(busiest, cost.Sent(r, program.Even(n*32*31, chunks)))
		}
		require.InDelta(t, x.sent, float64(busiest)/(n*32*31), 1e-9, "%s among %d", x.name, x.p)
	}
}

// TestGeneratorsCostTheirOwnSteps generates the programs of a few ranks among a million ranks.
// It requires that the number of instructions is proportional to the logarithm or to the square
// root of p.
func TestGeneratorsCostTheirOwnSteps(t *testing.T) {
	const p = 1<<20 - 1
	for name, most := range map[string]int{
		"recursive-doubling": 50, "halving-doubling": 130, "binomial": 50, "double-tree": 20,
		"binary-blocks": 130, "hierarchical": 9000, "blueconnect": 500, "torus": 5000,
	} {
		a := find(t, program.AllReduce, name)
		pr := algorithm.Params{P: p}
		require.NoError(t, a.Supports(pr))
		for _, rank := range []int{0, 1, p / 2, p - 2} {
			part := a.Generate(pr, rank)
			require.NoError(t, part.Validate())
			steps := 0
			for i := range part.Lanes {
				steps += len(part.Lanes[i].Steps)
			}
			require.Less(t, steps, most, "%s, rank %d", name, rank)
			require.Greater(t, steps, 1)
		}
	}
}

// TestStepsAreLogarithmic requires that the number of steps is at most twice the number of bits
// of p − 1, plus one.
func TestStepsAreLogarithmic(t *testing.T) {
	for _, name := range []string{"recursive-doubling", "halving-doubling", "binary-blocks", "binomial", "double-tree"} {
		a := find(t, program.AllReduce, name)
		for p := 2; p < 5000; p++ {
			require.LessOrEqual(t, a.Cost(algorithm.Params{P: p}).Steps, 2*bits.Len(uint(p-1))+1, "%s among %d", name, p)
		}
	}
}
