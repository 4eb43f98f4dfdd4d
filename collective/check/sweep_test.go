package check_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// everyAlgorithm runs f in a parallel subtest for each algorithm.
func everyAlgorithm(t *testing.T, f func(t *testing.T, a *algorithm.Algorithm)) {
	for c := range program.NumCollectives {
		for _, a := range algorithm.For(c) {
			t.Run(fmt.Sprintf("%s/%s", c, a.Name), func(t *testing.T) {
				t.Parallel()
				f(t, a)
			})
		}
	}
}

// roots returns the roots to test. If p is at most the parameter all, these are all ranks.
// Otherwise they are the first two ranks, the middle rank and the last rank.
func roots(a *algorithm.Algorithm, p, all int) []int {
	if !a.Collective.Rooted() {
		return []int{0}
	}
	if p <= all {
		r := make([]int, p)
		for i := range r {
			r[i] = i
		}
		return r
	}
	some := []int{0, 1, p / 2, p - 1}
	slices.Sort(some)
	return slices.Compact(some)
}

// arrangements returns dimensions for p ranks: the default of the algorithm (nil), every pair
// of factors, three factors, the prime factors, and each factor alone, as the size of groups.
func arrangements(p int) [][]int {
	all := [][]int{nil}
	var primes []int
	for d, rest := 2, p; rest > 1; d++ {
		for rest%d == 0 {
			primes = append(primes, d)
			rest /= d
		}
	}
	for d := 2; d < p; d++ {
		if p%d == 0 {
			all = append(all, []int{d, p / d}, []int{d})
		}
	}
	if len(primes) > 2 {
		k := len(primes) - 2
		three := []int{primes[k], primes[k+1], 1}
		for _, q := range primes[:k] {
			three[2] *= q
		}
		all = append(all, three)
	}
	if len(primes) > 3 {
		all = append(all, primes)
	}
	if p > 3 {
		all = append(all, []int{p}, []int{3})
	}
	return all
}

// forests returns several forests of p ranks. In one, shards are divided evenly, which gives
// nodes of all levels. In the other forests, some ranks have no nodes, shards are not in rank
// order, or each rank has one node.
func forests(p int) [][][]sharding.Node {
	cut := func(shards int) [][]sharding.Node {
		f := make([][]sharding.Node, p)
		for r := range f {
			f[r] = append([]sharding.Node{}, sharding.Cover(sharding.Split(shards, p, r))...)
		}
		return f
	}
	shuffled := cut(2*p + 3)
	slices.Reverse(shuffled)
	return [][][]sharding.Node{cut(3 * p), cut((p + 1) / 2), shuffled, oneNodeEach(p)}
}

// oneNodeEach returns a forest with one node per rank whose aligned tree is the fold tree over
// ranks.
func oneNodeEach(p int) [][]sharding.Node {
	q := 1
	for 2*q <= p {
		q *= 2
	}
	f := make([][]sharding.Node, p)
	for r := range f {
		if r < 2*(p-q) {
			f[r] = []sharding.Node{{Level: 0, Index: r}}
		} else {
			f[r] = []sharding.Node{{Level: 1, Index: r - (p - q)}}
		}
	}
	return f
}

// weight returns an estimate of the work of a check: the number of instructions, operands and
// chunks of all ranks. The estimate is computed from the programs of a few ranks.
func weight(a *algorithm.Algorithm, pr algorithm.Params) int {
	one := func(rank int) int {
		p := a.Generate(pr, rank)
		w := p.In.Len()*p.Partials() + p.Out.Len()
		for _, s := range p.Scratch {
			w += s.Len()
		}
		for i := range p.Lanes {
			for j := range p.Lanes[i].Steps {
				in := &p.Lanes[i].Steps[j]
				w += 2 + in.Dst.Chunks.Len() + len(in.After)
				for _, r := range in.Src {
					w += r.Chunks.Len()
				}
			}
		}
		return w
	}
	n := pr.P
	some := []int{one(pr.Root), one((pr.Root + n/3) % n), one((pr.Root + n/2) % n), one((pr.Root + n - 1) % n)}
	slices.Sort(some)
	return some[3] + n*some[2]
}

// sweep checks an algorithm for p ranks, with the roots of the function roots, all arrangements
// that give different programs, and all forests. If most is positive, it skips checks with a
// larger weight. It returns the number of checks.
func sweep(t *testing.T, a *algorithm.Algorithm, p, allRoots, most int) (checked int) {
	for _, root := range roots(a, p, allRoots) {
		pr := algorithm.Params{P: p, Root: root}
		if a.Supports(pr) != nil {
			require.False(t, a == algorithm.For(a.Collective)[0], "the first algorithm of a collective must support every p and root: %v", a.Supports(pr))
			continue
		}
		if most > 0 && weight(a, pr) > most {
			continue
		}
		checked++
		require.NoError(t, check.Algorithm(a, pr))
	}
	seen := map[string]bool{}
	for _, dims := range arrangements(p) {
		pr := algorithm.Params{P: p, Root: p / 2, Dims: dims}
		if a.Supports(pr) != nil || most > 0 && weight(a, pr) > most {
			continue
		}
		text := ""
		for _, r := range []int{0, p / 2, p - 1} {
			text += a.Generate(pr, r).String()
		}
		if !seen[text] && dims != nil {
			require.NoError(t, check.Algorithm(a, pr))
			checked++
		}
		seen[text] = true
	}
	for _, f := range forests(p) {
		if p > 1100 {
			break // too slow, since every rank hashes the forests of all ranks
		}
		pr := algorithm.Params{P: p, Root: p / 2, Forest: f}
		if a.Supports(pr) != nil || most > 0 && weight(a, pr) > most {
			continue
		}
		require.NoError(t, check.Algorithm(a, pr))
		checked++
	}
	return checked
}

// TestEveryAlgorithm proves every algorithm for every number of ranks up to a
// limit.
func TestEveryAlgorithm(t *testing.T) {
	upTo, allRoots := 33, 6
	if testsize.Soak {
		upTo, allRoots = 130, 33
	}
	everyAlgorithm(t, func(t *testing.T, a *algorithm.Algorithm) {
		checked := 0
		for p := 1; p <= upTo; p++ {
			checked += sweep(t, a, p, allRoots, 0)
		}
		require.NotZero(t, checked)
	})
}

// TestManyRanks proves algorithms for larger numbers of ranks, if their programs have few
// instructions and chunks.
func TestManyRanks(t *testing.T) {
	sample, most := []int{257}, 100_000
	if testsize.Soak {
		sample, most = []int{144, 255, 256, 257, 360, 511, 512, 513, 777, 1000, 1023, 1024, 1025, 1728, 2047, 2048, 2310, 3001, 4095, 4096}, 3_000_000
	}
	for c := range program.NumCollectives {
		for _, a := range algorithm.For(c) { // not in parallel, because each check needs much memory
			t.Run(fmt.Sprintf("%s/%s", c, a.Name), func(t *testing.T) {
				for _, p := range sample {
					sweep(t, a, p, 0, most)
				}
			})
		}
	}
}

// TestNoAlgorithmIsBetterThanItClaims requires that every algorithm claims the canonical tree
// and rank order if they hold for every number of ranks.
func TestNoAlgorithmIsBetterThanItClaims(t *testing.T) {
	everyAlgorithm(t, func(t *testing.T, a *algorithm.Algorithm) {
		canonical, rankOrder, err := check.Underclaims(a, 17)
		require.NoError(t, err)
		require.False(t, canonical, "the trees are canonical for every p, so the algorithm must claim it")
		require.False(t, rankOrder, "the order of ranks is kept for every p, so the algorithm must claim it")
	})
}

// TestCountsAndLayouts requires that the lengths with which programs are checked by default
// include empty and different chunks.
func TestCountsAndLayouts(t *testing.T) {
	require.Equal(t, []int{0, 1, 3, 4, 5, 127}, check.Counts(4))
	require.Equal(t, []int{0, 1, 2, 97}, check.Counts(1))
	p := &program.Program{Collective: program.AllGather, P: 6, Chunks: 6}
	empty, lengths := false, map[int]bool{}
	for _, l := range check.UnevenLayouts(p) {
		require.NoError(t, l[0].Check(6))
		for c := range 6 {
			n := l[0].Len(program.Chunk(program.Out, 0, c))
			empty = empty || n == 0
			lengths[n] = true
		}
	}
	require.True(t, empty)
	require.Greater(t, len(lengths), 6)
	p.Collective = program.AllToAll
	for _, l := range append(check.EvenLayouts(p), check.UnevenLayouts(p)...) {
		for r := range l {
			require.NoError(t, l[r].Check(6))
		}
	}
}
