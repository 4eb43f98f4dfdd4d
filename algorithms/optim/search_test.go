package optim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// run runs a search over φ until it ends. It returns the outcome, the step, and the number of
// batches of steps that were evaluated.
func run(s *search, phi func(t float64) (f, d float64), first float64, batch int) (searchStatus, float64, int) {
	f, d := phi(first)
	v := s.add(first, f, d)
	at, rounds := first, 0
	steps := make([]float64, batch)
	for v == searching && rounds < 200 {
		rounds++
		s.propose(steps)
		for _, t := range steps {
			f, d := phi(t)
			at = t
			if v = s.add(t, f, d); v != searching {
				break
			}
		}
	}
	return v, at, rounds
}

// TestStrongWolfe requires that the step found meets both conditions, for smooth functions that
// fall at 0 and are bounded below.
func TestStrongWolfe(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := rapid.Float64Range(0.01, 100).Draw(r, "bend")
		b := rapid.Float64Range(0.01, 100).Draw(r, "slope")
		c := rapid.Float64Range(0, 3).Draw(r, "ripple")
		k := rapid.Float64Range(0.1, 8).Draw(r, "frequency")
		first := math.Exp(rapid.Float64Range(-7, 7).Draw(r, "log first"))
		batch := rapid.IntRange(1, 8).Draw(r, "batch")
		phi := func(x float64) (float64, float64) {
			return a*x*x/2 - b*x + c*math.Cos(k*x), a*x - b - c*k*math.Sin(k*x)
		}
		f0, d0 := phi(0)
		var s search
		s.begin(f0, d0, math.Inf(1), false)
		v, at, rounds := run(&s, phi, first, batch)
		if v != accepts {
			r.Fatalf("ends with %v at %v after %d rounds", v, at, rounds)
		}
		f, d := phi(at)
		if f > f0+armijo*at*d0+rounding*math.Abs(f0) || math.Abs(d) > curvature*math.Abs(d0) {
			r.Fatalf("step %v: φ %v from %v, φ' %v from %v", at, f, f0, d, d0)
		}
		if at != s.best.t {
			r.Fatalf("best is %v, accepted %v", s.best.t, at)
		}
	})
}

// TestBacking requires that the step found meets the first condition and is not longer than the
// limit, for searches that need only the first condition.
func TestBacking(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := rapid.Float64Range(0.01, 1e6).Draw(r, "bend")
		limit := rapid.Float64Range(1, 20).Draw(r, "limit")
		phi := func(x float64) (float64, float64) {
			if x > limit {
				r.Fatalf("asked for %v beyond %v", x, limit)
			}
			return a*x*x/2 - x, a*x - 1
		}
		var s search
		s.begin(0, -1, limit, true)
		v, at, _ := run(&s, phi, 1, 1)
		f, _ := phi(at)
		if v != accepts || f > -armijo*at {
			r.Fatalf("%v at %v: %v", v, at, f)
		}
	})
}

// TestSearchBesideInfiniteValues requires that a step is found if the function is infinite or
// NaN beyond some step.
func TestSearchBesideInfiniteValues(t *testing.T) {
	for _, beyond := range []float64{math.Inf(1), math.NaN()} {
		for _, edge := range []float64{0.3, 1e-6, 1e-20} {
			for _, batch := range []int{1, 6} {
				phi := func(x float64) (float64, float64) {
					if x > edge {
						return beyond, 1
					}
					return (x - edge/2) * (x - edge/2) / edge, 2 * (x - edge/2) / edge
				}
				f0, d0 := phi(0)
				var s search
				s.begin(f0, d0, math.Inf(1), false)
				v, at, _ := run(&s, phi, 1, batch)
				require.Equal(t, accepts, v)
				require.Less(t, at, edge)
			}
		}
	}
	var s search
	s.begin(1, -1, math.Inf(1), false)
	v, _, _ := run(&s, func(float64) (float64, float64) { return math.NaN(), math.NaN() }, 1, 1)
	require.Equal(t, fails, v)
	require.Zero(t, s.best.t)
}

// TestNoiseEndsASearch requires that the search ends soon if rounding hides every possible
// decrease, and that it fails if the function decreases nowhere.
func TestNoiseEndsASearch(t *testing.T) {
	var s search
	s.begin(1, -1e-20, math.Inf(1), false)
	v, _, rounds := run(&s, func(x float64) (float64, float64) { return 1 + 1e-16*x, 0 }, 1, 1)
	require.Equal(t, accepts, v)
	require.Zero(t, rounds)
	s.begin(1, -1, math.Inf(1), false) // the slope is wrong for the function
	v, _, rounds = run(&s, func(x float64) (float64, float64) { return 1 + x, 1 }, 1, 1)
	require.Equal(t, fails, v)
	require.LessOrEqual(t, rounds, maxSteps)
}

// TestBlocksAddTheSame requires that sums by block do not depend on which subtask adds which
// blocks.
func TestBlocksAddTheSame(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 1000, 20011} {
		for _, shards := range []int{1, 8, 128} {
			b := newBlocks(n, shards)
			covered := 0
			for i := range b.count {
				require.Equal(t, covered, b.at(i).Lo)
				covered = b.at(i).Hi
				require.Positive(t, b.at(i).Len())
			}
			require.Equal(t, n, covered)
			require.LessOrEqual(t, b.count, shards)
			x := make([]float64, n)
			var exact float64
			for i := range x {
				x[i] = float64(i%7) - 3
				exact += x[i] * x[i]
			}
			require.Equal(t, exact, b.dot(x, x))
		}
	}
}
