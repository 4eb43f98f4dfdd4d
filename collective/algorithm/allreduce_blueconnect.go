package algorithm

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
)

// BlueConnect AllReduce. The ranks form a grid of any number of dimensions, p = d1·d2·…·dk;
// neighbouring ranks differ in the first digit. The reduce-scatter has one level for each
// dimension. At the first level, the d1 ranks of each group exchange parts of the data, and
// each rank folds one part. At the second level, groups of d2 ranks that have the same part
// divide and exchange that part, and so on. The all-gather goes through the levels in reverse.
// Within a group all pairs of ranks exchange their messages at the same time. Dims are d1…dk.
// Without Dims, they are the prime factors of p in ascending order.
//
//	steps            2 messages in a row for each dimension above 1
//	sent by rank r   2·n·(p−1)/p elements if p divides n: 2·n·(d1−1)/d1 at the first
//	                 level, 2·(n/d1)·(d2−1)/d2 at the second, and so on
//	scratch          at each level with d > 2, (d−1)/d of the elements that the rank
//	                 still has to reduce
//	order            at each level the fold tree over the ranks of a group, and groups
//	                 are in rank order. If p is a power of two or a prime, this is the fold
//	                 tree over ranks (canonical) whatever the dimensions
//
// Use it for networks with tiers: let the dimensions be the numbers of ranks per host, of hosts
// per rack, and of racks. Each tier carries only the part of the data that the tiers below have
// left to reduce. With dimensions (2, …, 2) it is halving-doubling, and with the single
// dimension p it is the direct exchange.
//
// Reference: Cho, Finkler, Kung, Hunter, "BlueConnect: Decomposing All-Reduce for Deep Learning
// on Heterogeneous Network Hierarchy" (MLSys 2019), which uses rings within groups. This
// implementation uses direct exchanges instead, because they keep the order of ranks and take
// fewer steps.
func blueConnect() *Algorithm {
	return &Algorithm{
		Name: "blueconnect", Collective: program.AllReduce,
		TakesDims: true,
		Summary:   "dimension by dimension of any grid of ranks: for hosts, racks and pods",
		Canonical: anyGridIsCanonical, RankOrder: Always, Forests: OnePerRank,
		Check:    checkBlueConnect,
		Generate: generateBlueConnect, Cost: blueConnectCost,
	}
}

// anyGridIsCanonical returns true for powers of two and for primes. The fold tree over 2m ranks
// is the fold tree over m leaves, each of which is a pair of ranks. So a grid is canonical only
// if the sizes of all its groups except the last are powers of two. All other p have a
// factorisation that begins with a number that is not a power of two.
func anyGridIsCanonical(p int) bool { return p&(p-1) == 0 || len(primeFactors(p)) == 1 }

// primeFactors returns the prime factors of p in ascending order.
func primeFactors(p int) []int {
	var factors []int
	for d := 2; d*d <= p; d++ {
		for p%d == 0 {
			factors = append(factors, d)
			p /= d
		}
	}
	if p > 1 {
		factors = append(factors, p)
	}
	return factors
}

// checkDims returns an error if the dimensions do not form a grid of p ranks.
func checkDims(pr Params) error {
	product := 1
	for _, d := range pr.Dims {
		if d < 1 || d > pr.P {
			return fmt.Errorf("a dimension of %d among %d ranks", d, pr.P)
		}
		if product *= d; product > pr.P {
			break
		}
	}
	if pr.Dims != nil && product != pr.P {
		return fmt.Errorf("dimensions %v do not make a grid of %d ranks", pr.Dims, pr.P)
	}
	return nil
}

func checkBlueConnect(pr Params) error {
	if err := checkDims(pr); err != nil {
		return err
	}
	if pr.Forest != nil && !anyGridIsCanonical(pr.P) {
		return fmt.Errorf("a forest of %d ranks may not be folded in its aligned tree: want a power of two or a prime number of ranks", pr.P)
	}
	return nil
}

func blueConnectDims(pr Params) []int {
	if pr.Dims != nil {
		return slices.Clone(pr.Dims)
	}
	return primeFactors(pr.P)
}

// generateBlueConnect makes the program of rank in time O(d1 + … + dk), not counting the
// factorisation of p.
func generateBlueConnect(pr Params, rank int) *program.Program {
	b := build(program.AllReduce, "blueconnect", pr, rank, pr.P)
	b.claim(anyGridIsCanonical(pr.P), true)
	b.Dims = blueConnectDims(pr)
	if pr.P == 1 {
		return b.alone()
	}
	g := &grid{rank: ranksAreMembers, chunks: windowsAreChunks}
	levels := levelsOf(rank, b.Dims)
	b.openDirect(g, levels)
	from := program.Ref{Buffer: program.In}
	to := program.Ref{Buffer: program.Out}
	for _, l := range levels {
		b.scatterDirect(g, l, from, to)
		from = to
	}
	for i := len(levels) - 1; i >= 0; i-- {
		b.gatherDirect(g, levels[i])
	}
	return b.finish()
}

func ranksAreMembers(member int) int { return member }

func blueConnectCost(pr Params) program.Cost {
	dims := blueConnectDims(pr)
	steps := 0
	for _, d := range dims {
		if d > 1 {
			steps += 2
		}
	}
	return program.Cost{Steps: steps, Sent: func(rank int, l program.Layout) int {
		sent, _ := gridSent(dims, rank, l, 0)
		return sent
	}}
}

// gridSent returns the number of elements that a member sends on a grid. At each level a member
// sends the parts of all other members. In the all-gather it sends its own result to each of
// these members or, in a ring, all results except the result of the next member. The parameter
// ring is 1 for rings and 0 otherwise. own is the chunk that the member owns after the
// reduce-scatter.
func gridSent(dims []int, rank int, l program.Layout, ring int) (sent, own int) {
	lo, hi := 0, l.Out[len(l.Out)-1]
	first, width := 0, len(l.Out)-1
	for _, d := range dims {
		digit := rank % d
		rank /= d
		width /= d
		at := func(i int) (int, int) { return l.Out[first+i*width], l.Out[first+(i+1)*width] }
		a, z := at(digit)
		sent += hi - lo - (z - a)
		if ring == 1 {
			a, z := at((digit + 1) % d)
			sent += hi - lo - (z - a)
		} else {
			sent += (d - 1) * (z - a)
		}
		lo, hi = a, z
		first += digit * width
	}
	return sent, first
}
