package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naiveNearest returns the nearest centre of x and its distance, as in a textbook version of
// Lloyd's algorithm.
func naiveNearest(x, centers []float64, k, d int) (int, float64) {
	best, arg := math.NaN(), -1
	for a := range k {
		var acc float64
		for j := range d {
			t := x[j] - centers[a*d+j]
			acc += float64(t * t)
		}
		if acc < best || (arg < 0 && acc == acc) {
			best, arg = acc, a
		}
	}
	return arg, math.Sqrt(best)
}

// hostile draws values that make ties, near ties, cancellation, overflow and
// underflow common.
func hostile(rng *rand.Rand, style int) float64 {
	switch style {
	case 0: // exact ties
		return float64(rng.IntN(3))
	case 1: // near ties far from the origin
		return 1e8 + float64(rng.IntN(4))*1e-8
	case 2: // magnitudes from 1e-8 to 1e16
		return rng.NormFloat64() * math.Pow(10, float64(rng.IntN(25)-8))
	case 3: // ties up to one ulp
		return math.Float64frombits(math.Float64bits(1) + uint64(rng.IntN(3)))
	case 4: // squares that underflow or overflow
		return []float64{1e-200, 3e-162, 1e200, -1e200, 0, 5e-324, math.MaxFloat64}[rng.IntN(7)]
	case 5: // values that the caller should refuse
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1, 2}[rng.IntN(6)]
	default:
		return rng.NormFloat64()
	}
}

func fill(rng *rand.Rand, x []float64, style int) []float64 {
	for i := range x {
		x[i] = hostile(rng, style)
	}
	return x
}

// requireBits compares bit patterns, with all NaNs equal.
func requireBits(t require.TestingT, want, got []float64, msg ...any) {
	require.Len(t, got, len(want), msg...)
	for i := range want {
		if want[i] != want[i] && got[i] != got[i] {
			continue
		}
		require.Equal(t, math.Float64bits(want[i]), math.Float64bits(got[i]), msg...)
	}
}

func TestAssignEqualsLloyd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		style := rapid.IntRange(0, 6).Draw(t, "style")
		k := rapid.IntRange(1, 35).Draw(t, "k")
		d := rapid.IntRange(0, 19).Draw(t, "d")
		n := rapid.SampledFrom([]int{0, 1, 2, 3, 5, 67, 127, 128, 129, 300}).Draw(t, "n")
		offset := rapid.IntRange(0, 3).Draw(t, "offset") // slices that are not aligned
		x := fill(rng, make([]float64, offset+n*d), style)[offset:]
		centers := fill(rng, make([]float64, k*d), style)
		if rapid.Bool().Draw(t, "centres are rows") && n > 0 {
			for a := range k {
				copy(centers[a*d:(a+1)*d], x[rng.IntN(n)*d:])
			}
		}
		c := NewCenters(k, d)
		c.Set(centers)
		assign, dist := make([]int32, n), make([]float64, n)
		for i := range assign {
			assign[i] = int32(rng.IntN(k+4) - 2)
		}
		for range 2 { // first with arbitrary guesses, then with right guesses
			AssignEuclidean(x, n, c, assign, dist)
			for i := range n {
				row := x[i*d : (i+1)*d]
				want, wantDist := naiveNearest(row, centers, k, d)
				require.Equal(t, want, int(assign[i]), "row %d", i)
				requireBits(t, []float64{wantDist}, dist[i:i+1])
				near, nearDist := Nearest(row, c)
				require.Equal(t, want, near)
				requireBits(t, []float64{wantDist}, []float64{nearDist})
			}
		}
	})
}

// TestReachNearTheBisector puts rows within a few ulp of the plane between two centres, where a
// reach without allowance for rounding would be wrong.
func TestReachNearTheBisector(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		d := 1 + rng.IntN(12)
		centers := fill(rng, make([]float64, 2*d), []int{1, 2, 6}[rng.IntN(3)])
		c := NewCenters(2, d)
		c.Set(centers)
		n := 64
		x := make([]float64, n*d)
		for i := range n {
			for j := range d {
				m := centers[j]/2 + centers[d+j]/2
				x[i*d+j] = math.Float64frombits(math.Float64bits(m) + uint64(rng.IntN(7)) - 3)
			}
		}
		assign, dist := make([]int32, n), make([]float64, n)
		for i := range assign {
			assign[i] = int32(rng.IntN(2))
		}
		AssignEuclidean(x, n, c, assign, dist)
		for i := range n {
			want, _ := naiveNearest(x[i*d:(i+1)*d], centers, 2, d)
			require.Equal(t, want, int(assign[i]))
		}
	}
}

// TestAssignIsAFunctionOfTheRow permutes the rows of a block and requires the same result for
// each row.
func TestAssignIsAFunctionOfTheRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const n, d, k = 301, 7, 11
	x, centers := blobs(n, d, k, 0.5)
	c := NewCenters(k, d)
	c.Set(centers)
	assign, dist := make([]int32, n), make([]float64, n)
	AssignEuclidean(x, n, c, assign, dist)
	perm := rng.Perm(n)
	y := make([]float64, n*d)
	for i, p := range perm {
		copy(y[i*d:(i+1)*d], x[p*d:])
	}
	for _, m := range []int{n, n - 1, n - 2, n - 3, 130, 5} {
		got, gotDist := make([]int32, m), make([]float64, m)
		AssignEuclidean(y, m, c, got, gotDist)
		for i := range m {
			require.Equal(t, assign[perm[i]], got[i])
			require.Equal(t, dist[perm[i]], gotDist[i])
		}
	}
}

func naiveAccumulate(x []float64, n, d int, w []float64, assign []int32, dist, sums []float64, inertia float64) float64 {
	for i := range n {
		weight := 1.0
		if w != nil {
			weight = w[i]
		}
		if a := int(assign[i]); a >= 0 {
			for j := range d {
				sums[a*(d+1)+j] += float64(weight * x[i*d+j])
			}
			sums[a*(d+1)+d] += weight
		}
		inertia += float64(weight * float64(dist[i]*dist[i]))
	}
	return inertia
}

func TestAccumulateCentroids(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		k := rapid.IntRange(1, 20).Draw(t, "k")
		d := rapid.IntRange(0, 67).Draw(t, "d")
		n := rapid.IntRange(0, 300).Draw(t, "n")
		style := rapid.IntRange(0, 6).Draw(t, "style")
		x := fill(rng, make([]float64, n*d), style)
		centers := fill(rng, make([]float64, k*d), style)
		var w []float64
		if rapid.Bool().Draw(t, "weighted") {
			w = fill(rng, make([]float64, n), 6)
		}
		c := NewCenters(k, d)
		c.Set(centers)
		assign, dist := make([]int32, n), make([]float64, n)
		AssignEuclidean(x, n, c, assign, dist)
		want := make([]float64, k*(d+1))
		wantInertia := naiveAccumulate(x, n, d, w, assign, dist, want, 0.5)

		split := make([]float64, k*(d+1))
		AccumulateCentroids(x, n, d, w, assign, split)
		requireBits(t, want, split)
		requireBits(t, []float64{wantInertia}, []float64{Inertia(n, w, dist, 0.5)})
	})
}

func TestKMeansAllocatesNothing(t *testing.T) {
	const n, d, k = 300, 5, 9
	x, centers := blobs(n, d, k, 0.5)
	c := NewCenters(k, d)
	assign, dist := make([]int32, n), make([]float64, n)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		c.Set(centers)
		AssignEuclidean(x, n, c, assign, dist)
		Nearest(x, c)
	}))
}
