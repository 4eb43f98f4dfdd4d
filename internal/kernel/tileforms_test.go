package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// testTiles runs every product of matrices at one shape.
func testTiles(t *testing.T, rng *rand.Rand, n, d, k, offset, style int) {
	at := fmt.Sprintf("n=%d d=%d k=%d offset=%d style=%d", n, d, k, offset, style)
	x, rows := mixed[float64](rng, n*d, offset, style), mixed[float64](rng, k*d, offset%3, style)
	coef, h := mixed[float64](rng, n*k, (offset+1)%8, style), mixed[float64](rng, n, (offset+2)%8, style)

	w, c := NewPacked(k, d), NewCenters(k, d)
	w.Set(rows)
	c.Set(rows)
	out := mixed[float64](rng, n*k, (offset+3)%8, 0)
	want, got := clone(out), clone(out)
	mulRows(dispatch{}, x, n, w, want)
	mulRows(assembled, x, n, w, got)
	same(t, want, got, "mulRows", at)
	squaredDistanceRows(dispatch{}, x, n, c, want)
	squaredDistanceRows(assembled, x, n, c, got)
	same(t, want, got, "squaredDistanceRows", at)
	if n > 0 {
		want, got := mixed[float64](rng, k, offset, 0), mixed[float64](rng, k, offset, 0)
		squaredDistances(dispatch{}, x, c, want)
		squaredDistances(assembled, x, c, got)
		same(t, want, got, "squaredDistances", at)
	}

	want, got = clone(rows), clone(rows)
	addOuterRows(dispatch{}, x, n, d, coef, k, want)
	addOuterRows(assembled, x, n, d, coef, k, got)
	same(t, want, got, "addOuterRows", at)

	if k%2 == 0 {
		h = nil
	}
	gram := mixed[float64](rng, d*(d+1)/2, offset, style)
	want, got = clone(gram), clone(gram)
	gramRows(dispatch{}, x, n, d, h, want)
	gramRows(assembled, x, n, d, h, got)
	same(t, want, got, "gramRows", at)
}

// testSearch runs the search of the nearest centre at one shape, from guesses that
// may be wrong.
func testSearch(t *testing.T, rng *rand.Rand, n, d, k, offset, style int) {
	at := fmt.Sprintf("n=%d d=%d k=%d offset=%d style=%d", n, d, k, offset, style)
	x, rows := mixed[float64](rng, n*d, offset, style), mixed[float64](rng, k*d, 0, style)
	switch {
	case style == 2 && k > 2 && d > 0:
		copy(rows[(k-1)*d:], rows[:d]) // a tie
		copy(x, rows[:min(d, len(x))])
	case style == 1 && rng.IntN(3) == 0:
		for i := range rows {
			rows[i] = math.Inf(1)
		}
	}
	c := NewCenters(k, d)
	c.Set(rows)
	w := mixed[float64](rng, n, offset, 0)
	guess := make([]int32, n)
	for i := range guess {
		guess[i] = int32(rng.IntN(k+2)) - 1
	}
	for _, weights := range [][]float64{nil, w} {
		var near [2][]int32
		var dist, sums [2][]float64
		var inertia [2]float64
		for i, form := range []dispatch{{}, assembled} {
			near[i], dist[i], sums[i] = slices.Clone(guess), mixed[float64](rng, n, offset, 0), make([]float64, k*(d+1)+guard)[:k*(d+1)]
			for g := range guard {
				sums[i][:k*(d+1)+guard][k*(d+1)+g] = guardValue
			}
			inertia[i] = assignAccumulate(form, x, n, c, weights, near[i], dist[i], sums[i], 1)
		}
		require.Equal(t, near[0], near[1], at)
		same(t, dist[0], dist[1], "dist", at)
		same(t, sums[0], sums[1], "sums", at)
		require.Equal(t, bits(inertia[:1]), bits(inertia[1:]), at)
	}
	for i := range n {
		want, square := Nearest(x[i*d:i*d+d], c)
		near, dist := slices.Clone(guess[i:i+1]), []float64{0}
		assignEuclidean(assembled, x[i*d:i*d+d], 1, c, near, dist)
		require.Equal(t, int32(want), near[0], at)
		requireBits(t, []float64{square}, dist, at)
	}
}

func TestSearchForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(55, 56))
	for d := range 40 {
		for k := 1; k <= 40; k++ {
			if formShapes == 1 && (d+k)%4 != 0 && d > 9 {
				continue
			}
			testSearch(t, rng, (d+7*k)%19, d, k, (d+k)%8, rng.IntN(3))
		}
	}
	testSearch(t, rng, 3*chunk+5, 40, 300, 1, 0)
	testSearch(t, rng, 3*chunk+5, 40, 300, 1, 1)
}

func TestTileForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	for d := range 71 {
		for k := 1; k <= 40; k++ {
			if formShapes == 1 && (d+k)%6 != 0 && d > 9 {
				continue
			}
			testTiles(t, rng, (d+7*k)%30, d, k, (d+k)%8, (d+k/2)%3)
		}
	}
	testTiles(t, rng, 2*blockRows+3, 3*blockColumns+5, 9, 1, 0)
	testTiles(t, rng, blockRows+1, 9, 3, 1, 0)
}

func FuzzTiles(f *testing.F) {
	f.Add(uint64(1), uint8(9), uint8(11), uint8(3), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, n, d, k, offset, style uint8) {
		testTiles(t, rand.New(rand.NewPCG(seed, 1)), int(n), int(d), int(k%50)+1, int(offset%8), int(style%3))
		testSearch(t, rand.New(rand.NewPCG(seed, 2)), int(n), int(d), int(k%50)+1, int(offset%8), int(style%3))
	})
}

func BenchmarkTileForms(b *testing.B) {
	rng := rand.New(rand.NewPCG(53, 54))
	for _, s := range []struct{ n, d, k int }{{2000, 50, 10}, {1000, 16, 10}, {1000, 32, 64}, {500, 100, 256}, {200, 784, 10}, {300, 1000, 8}} {
		n, d, k := s.n, s.d, s.k
		x, coef, rows := mixed[float64](rng, n*d, 0, 0), mixed[float64](rng, n*k, 0, 0), mixed[float64](rng, k*d, 0, 0)
		h, gram := mixed[float64](rng, n, 0, 0), make([]float64, d*(d+1)/2)
		w, c := NewPacked(k, d), NewCenters(k, d)
		w.Set(rows)
		c.Set(rows)
		out := make([]float64, n*k)
		at := fmt.Sprintf("/n=%d,d=%d,k=%d", n, d, k)
		benchForms(b, "GramRows"+at, 8*n*d, n*d*(d+1), func(f dispatch) { gramRows(f, x, n, d, h, gram) })
		benchForms(b, "MulRows"+at, 8*n*d, 2*n*d*k, func(f dispatch) { mulRows(f, x, n, w, out) })
		benchForms(b, "AddOuterRows"+at, 8*n*d, 2*n*d*k, func(f dispatch) { addOuterRows(f, x, n, d, coef, k, rows) })
		benchForms(b, "SquaredDistanceRows"+at, 8*n*d, 3*n*d*k, func(f dispatch) { squaredDistanceRows(f, x, n, c, out) })
		benchForms(b, "SquaredDistances"+at, 8*d, 3*d*k, func(f dispatch) { squaredDistances(f, x, c, out) })
	}
}
