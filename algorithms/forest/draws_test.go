package forest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBootstrapIsPoisson(t *testing.T) {
	for _, share := range []float64{1, 0.5} {
		s := newSampler(Params{Sampling: Bootstrap, SampleShare: share, Seed: 7})
		const n = 200_000
		times := make([]uint8, n)
		s.draw(3, 5, times)
		seen := map[int]float64{}
		for _, k := range times {
			seen[int(k)]++
		}
		// The expected distribution is e^-λ·λ^k/k!. With seven classes the statistic of
		// Pearson's test exceeds 22.5 in one of a thousand cases.
		statistic, rest, left := 0.0, 1.0, float64(n)
		p := math.Exp(-share)
		for k := range 6 {
			statistic += (seen[k] - n*p) * (seen[k] - n*p) / (n * p)
			rest -= p
			left -= seen[k]
			p *= share / float64(k+1)
		}
		statistic += (left - n*rest) * (left - n*rest) / (n * rest)
		require.Less(t, statistic, 22.5)
	}
}

func TestSubsetHasItsShare(t *testing.T) {
	s := newSampler(Params{Sampling: Subset, SampleShare: 0.3, Seed: 7})
	const n = 100_000
	times := make([]uint8, n)
	s.draw(0, 0, times)
	drawn := 0.0
	for _, k := range times {
		require.LessOrEqual(t, k, uint8(1))
		drawn += float64(k)
	}
	require.InDelta(t, 0.3*n, drawn, 4*math.Sqrt(n*0.3*0.7))
}

// TestDrawsDependOnThePlaceAlone requires that the draws of a row depend on the seed, the tree,
// the shard and the row's number in the shard, and on nothing else.
func TestDrawsDependOnThePlaceAlone(t *testing.T) {
	for _, sampling := range []Sampling{Bootstrap, Subset} {
		p := Params{Sampling: sampling, SampleShare: 0.6, Seed: 7}
		draw := func(p Params, tree, shard, n int) []uint8 {
			times := make([]uint8, n)
			newSampler(p).draw(tree, shard, times)
			return times
		}
		long := draw(p, 3, 5, 1000)
		require.Equal(t, long[:10], draw(p, 3, 5, 10))
		require.NotEqual(t, long, draw(p, 4, 5, 1000))
		require.NotEqual(t, long, draw(p, 3, 6, 1000))
		p.Seed++
		require.NotEqual(t, long, draw(p, 3, 5, 1000))
	}
	whole := make([]uint8, 4)
	newSampler(Params{Sampling: Whole}).draw(0, 0, whole)
	require.Equal(t, []uint8{1, 1, 1, 1}, whole)
}

func TestKeysOfNodesDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	keys := []uint64{rootKey}
	for range 14 {
		var next []uint64
		for _, k := range keys {
			require.False(t, seen[k])
			seen[k] = true
			next = append(next, childKey(k, false), childKey(k, true))
		}
		keys = next
	}
}
