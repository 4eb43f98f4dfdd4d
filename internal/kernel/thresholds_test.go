package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// thresholdProblem draws the sums of bins. Many sums are 0 or repeated, so that equal scores
// are common.
func thresholdProblem(rng *rand.Rand) (Thresholds, []int64) {
	n, most := rng.IntN(70), int64(1)<<rng.IntN(50)
	sums := make([]int64, 2*n)
	t := Thresholds{
		UnitG: math.Ldexp(1, -rng.IntN(30)), UnitH: math.Ldexp(1, -rng.IntN(30)), Lambda: float64(rng.IntN(3)) / 2,
		Score: math.Inf(-1), Place: -7,
	}
	if rng.IntN(2) == 0 {
		t.G, t.H = rng.Int64N(2*most)-most, rng.Int64N(most)
	}
	t.AllG, t.AllH = t.G, t.H
	for i := range n {
		if rng.IntN(3) > 0 {
			sums[2*i], sums[2*i+1] = rng.Int64N(2*most)-most, rng.Int64N(most)
		}
		if i > 1 && rng.IntN(4) == 0 {
			sums[2*i], sums[2*i+1] = -sums[2*i-2], -sums[2*i-1] // cancels the sums of the bin before
		}
		t.AllG, t.AllH = t.AllG+sums[2*i], t.AllH+sums[2*i+1]
	}
	if rng.IntN(2) == 0 {
		t.AllH += rng.Int64N(most)
	}
	if rng.IntN(2) == 0 {
		t.Least = rng.Float64() / 2 * float64(t.AllH) * t.UnitH
	}
	return t, sums
}

// bestThreshold returns the result of Scan by the definition of Thresholds: it computes the
// sums and the score of each threshold separately.
func bestThreshold(t Thresholds, sums []int64, first int) Thresholds {
	at := t
	for i := range len(sums) / 2 {
		at.G, at.H = t.G, t.H
		for b := range i + 1 {
			at.G, at.H = at.G+sums[2*b], at.H+sums[2*b+1]
		}
		right := [2]int64{at.AllG - at.G, at.AllH - at.H}
		score, counts := 0.0, true
		for _, side := range [][2]int64{{at.G, at.H}, right} {
			g, h := float64(side[0])*t.UnitG, float64(side[1])*t.UnitH
			counts = counts && side != [2]int64{} && h >= t.Least && h+t.Lambda > 0
			score += float64(g*g) / (h + t.Lambda)
		}
		if counts && score > at.Score {
			at.Score, at.Place = score, first+i
		}
	}
	return at
}

func TestThresholds(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	forms := map[string]dispatch{"assembly": available(), "go": {}}
	some := 0
	for seed := range 3000 {
		start, sums := thresholdProblem(rng)
		first := rng.IntN(5)
		want := bestThreshold(start, sums, first)
		if want.Place >= 0 {
			some++
			if rng.IntN(3) == 0 { // a threshold whose score only equals the initial score must not be taken
				start.Score = want.Score
				want = bestThreshold(start, sums, first)
			}
		}
		for name, form := range forms {
			got := start
			cut := rng.IntN(len(sums)/2+1) * 2
			got.scan(form, sums[:cut], first)
			got.scan(form, sums[cut:], first+cut/2)
			require.Equal(t, want, got, fmt.Sprint(name, " ", seed))
		}
	}
	require.Greater(t, some, 1000)
}

// TestThresholdsFarAway tests more bins than one call of assembly takes.
func TestThresholdsFarAway(t *testing.T) {
	const n = callSize + 40
	sums := make([]int64, 2*n)
	for i := range sums {
		sums[i] = 1
	}
	sums[2*(n-9)] = n
	for name, form := range map[string]dispatch{"assembly": available(), "go": {}} {
		s := Thresholds{AllG: 2*n - 1, AllH: n, UnitG: 1, UnitH: 1, Score: math.Inf(-1)}
		s.scan(form, sums, 1)
		require.Equal(t, 1+n-10, s.Place, name)
		require.Equal(t, [2]int64{2*n - 1, n}, [2]int64{s.G, s.H}, name)
	}
}

func TestSumPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for n := range 40 {
		for name, form := range histogramForms() {
			pairs := make([]int64, 2*n)
			_, _, some := sumPairs(form, pairs)
			require.False(t, some, name)
			var want [2]int64
			for i := range pairs {
				pairs[i] = int64(rng.Uint64())
				want[i%2] += pairs[i]
			}
			g, h, some := sumPairs(form, pairs)
			require.Equal(t, want, [2]int64{g, h}, name)
			require.Equal(t, n > 0, some, name)
			if n > 0 {
				clear(pairs)
				pairs[rng.IntN(2*n)] = 1
				_, _, some = sumPairs(form, pairs)
				require.True(t, some, name)
			}
		}
	}
}

// BenchmarkThresholds reports nanoseconds per threshold, for features with 254 thresholds.
func BenchmarkThresholds(b *testing.B) {
	const n = 254
	rng := rand.New(rand.NewPCG(1, 2))
	t, sums := Thresholds{UnitG: 1, UnitH: 1, Lambda: 1}, make([]int64, 2*n)
	for i := range n {
		sums[2*i], sums[2*i+1] = rng.Int64N(2000)-1000, rng.Int64N(1000)
		t.AllG, t.AllH = t.AllG+sums[2*i], t.AllH+sums[2*i+1]
	}
	for name, form := range map[string]dispatch{"assembly": available(), "go": {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s := t
				s.scan(form, sums, 0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/threshold")
		})
	}
}
