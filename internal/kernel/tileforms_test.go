package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// testTiles compares all forms of every product of matrices at one shape.
func testTiles(t *testing.T, rng *rand.Rand, n, d, k, offset, style int) {
	at := fmt.Sprintf("n=%d d=%d k=%d offset=%d style=%d", n, d, k, offset, style)
	x, rows := mixed[float64](rng, n*d, offset, style), mixed[float64](rng, k*d, offset%3, style)
	coef, h := mixed[float64](rng, n*k, (offset+1)%8, style), mixed[float64](rng, n, (offset+2)%8, style)

	w := NewPacked(k, d)
	w.Set(rows)
	out := mixed[float64](rng, n*k, (offset+3)%8, 0)
	compare(t, out, "mulRows "+at, func(f dispatch, out []float64) { mulRows(f, x, n, w, out) })
	compare(t, rows, "addOuterRows "+at, func(f dispatch, out []float64) { addOuterRows(f, x, n, d, coef, k, out) })
	if k%2 == 0 {
		h = nil
	}
	gram := mixed[float64](rng, d*(d+1)/2, offset, style)
	compare(t, gram, "gramRows "+at, func(f dispatch, out []float64) { gramRows(f, new(Gram), x, n, d, h, out) })
}

// testCentres compares all forms of the distances and sums of k-means at one shape.
func testCentres[T Float](t *testing.T, rng *rand.Rand, n, d, k, offset, style int) {
	at := fmt.Sprintf("n=%d d=%d k=%d offset=%d style=%d", n, d, k, offset, style)
	x, rows := mixed[T](rng, n*d, offset, style), mixed[T](rng, k*d, (offset+1)%8, style)
	p := NewPanels[T](k, d)
	p.Set(rows)
	require.Equal(t, []int{k, d}, []int{p.K(), p.D()})
	near, assign := make([]int32, n), make([]int32, n)
	for i := range near {
		near[i], assign[i] = int32(rng.IntN(k)), int32(rng.IntN(k+1))-1
	}
	every := append([]dispatch{{}}, assembled...)
	if n > 0 {
		want, got := mixed[T](rng, k, offset, 0), mixed[T](rng, k, offset, 0)
		for a := range k {
			want[a] = squaredDistance(x[:d], rows[a*d:a*d+d])
		}
		for _, form := range every {
			p.to(form, x, got)
			same(t, want, got, "panels", at, form)
		}
	}
	want, got := mixed[T](rng, n, offset, 0), mixed[T](rng, n, offset, 0)
	for i, a := range near {
		want[i] = squaredDistance(x[i*d:i*d+d], rows[int(a)*d:int(a)*d+d])
	}
	for _, form := range every {
		ownDistances(form, x, n, d, rows, near, got)
		same(t, want, got, "own", at, form)
	}

	for _, w := range [][]float64{nil, mixed[float64](rng, n, offset, style)} {
		before := mixed[float64](rng, k*(d+1), (offset+2)%8, style)
		want := clone(before)
		for i, a := range assign {
			for j := 0; a >= 0 && j <= d; j++ {
				weight, v := 1.0, 1.0
				if w != nil {
					weight = w[i]
				}
				if j < d {
					v = float64(x[i*d+j])
				}
				want[int(a)*(d+1)+j] += float64(weight * v)
			}
		}
		for _, form := range every {
			got := clone(before)
			accumulateCentroids(form, x, n, d, w, assign, got, 0)
			same(t, want, got, "sums", at, form)
		}
	}
}

// TestWrongCentre requires a panic for the index of a centre that is out of range, in every
// form.
func TestWrongCentre(t *testing.T) {
	for _, form := range append([]dispatch{{}}, assembled...) {
		x, out, centers := make([]float64, 16), make([]float64, 8), make([]float64, 6)
		for _, wrong := range []int32{3, -1, math.MaxInt32, math.MinInt32} {
			near := []int32{0, 1, 2, 0, 1, 2, wrong, 1}
			require.Panics(t, func() { ownDistances(form, x, 8, 2, centers, near, out) })
			if wrong > 0 {
				require.Panics(t, func() { accumulateCentroids(form, x, 8, 2, nil, near, make([]float64, 9), 0) })
			}
		}
		accumulateCentroids(form, x, 8, 2, nil, []int32{-1, -2, -1, -1, -1, -1, -1, -1}, nil, 0)
	}
}

// testSearch compares all forms of the search of the nearest centre at one shape. Its guesses
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
		near, dist, sums := slices.Clone(guess), mixed[float64](rng, n, offset, 0), mixed[float64](rng, k*(d+1), offset, 0)
		begin := clone(sums)
		a := newAssigner[float64](dispatch{}, k, d)
		a.Set(rows)
		assignEuclidean(dispatch{}, x, n, c, near, dist)
		inertia := a.Accumulate(x, n, weights, slices.Clone(guess), sums, 1)
		for _, form := range assembled {
			gotNear, gotDist, gotSums := slices.Clone(guess), clone(dist), clone(begin)
			assignEuclidean(form, x, n, c, gotNear, gotDist)
			require.Equal(t, near, gotNear, at)
			a := newAssigner[float64](form, k, d)
			a.Set(rows)
			gotNear = slices.Clone(guess)
			got := a.Accumulate(x, n, weights, gotNear, gotSums, 1)
			require.Equal(t, near, gotNear, at)
			same(t, dist, gotDist, "dist", at, form)
			same(t, sums, gotSums, "sums", at, form)
			require.Equal(t, bits([]float64{inertia}), bits([]float64{got}), at)
		}
	}
	for i := range n {
		want, square := Nearest(x[i*d:i*d+d], c)
		for _, form := range assembled {
			near, dist := slices.Clone(guess[i:i+1]), []float64{0}
			assignEuclidean(form, x[i*d:i*d+d], 1, c, near, dist)
			require.Equal(t, int32(want), near[0], at)
			requireBits(t, []float64{square}, dist, at)
		}
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
			testCentres[float64](t, rng, (d+7*k)%19, d, k, (d+k)%8, rng.IntN(3))
			testCentres[float32](t, rng, (d+7*k)%19, d, k, (d+k)%8, rng.IntN(3))
		}
	}
	for k := 60; k < 200; k += 7 {
		testCentres[float64](t, rng, 9, 5, k, 1, 2)
		testCentres[float32](t, rng, 9, 5, k, 1, 2)
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
		testCentres[float64](t, rand.New(rand.NewPCG(seed, 3)), int(n), int(d), int(k)+1, int(offset%8), int(style%3))
		testCentres[float32](t, rand.New(rand.NewPCG(seed, 4)), int(n), int(d), int(k)+1, int(offset%8), int(style%3))
		testSearch(t, rand.New(rand.NewPCG(seed, 2)), int(n), int(d), int(k%50)+1, int(offset%8), int(style%3))
	})
}

func BenchmarkTileForms(b *testing.B) {
	rng := rand.New(rand.NewPCG(53, 54))
	for _, s := range []struct{ n, d, k int }{{2000, 50, 10}, {1000, 16, 10}, {1000, 32, 64}, {500, 100, 256}, {200, 784, 10}, {300, 1000, 8}} {
		n, d, k := s.n, s.d, s.k
		x, coef, rows := mixed[float64](rng, n*d, 0, 0), mixed[float64](rng, n*k, 0, 0), mixed[float64](rng, k*d, 0, 0)
		h, gram := mixed[float64](rng, n, 0, 0), make([]float64, d*(d+1)/2)
		w := NewPacked(k, d)
		w.Set(rows)
		out := make([]float64, n*k)
		at := fmt.Sprintf("/n=%d,d=%d,k=%d", n, d, k)
		benchForms(b, "GramRows"+at, 8*n*d, n*d*(d+1), func(f dispatch) { gramRows(f, new(Gram), x, n, d, h, gram) })
		benchForms(b, "MulRows"+at, 8*n*d, 2*n*d*k, func(f dispatch) { mulRows(f, x, n, w, out) })
		benchForms(b, "AddOuterRows"+at, 8*n*d, 2*n*d*k, func(f dispatch) { addOuterRows(f, x, n, d, coef, k, rows) })
	}
}

func benchCentres[T Float](b *testing.B, element string, size, n, d, k int) {
	rng := rand.New(rand.NewPCG(57, 58))
	x, rows := mixed[T](rng, n*d, 0, 0), mixed[T](rng, k*d, 0, 0)
	p, near, out, one := NewPanels[T](k, d), make([]int32, n), make([]T, n), make([]T, k)
	p.Set(rows)
	for i := range near {
		near[i] = int32(rng.IntN(k))
	}
	sums := make([]float64, k*(d+1))
	at := fmt.Sprintf("/%s/d=%d,k=%d", element, d, k)
	benchForms(b, "Panels"+at, size*k*d, 3*k*d, func(f dispatch) { p.to(f, x, one) })
	benchForms(b, "OwnDistances"+at, size*n*d, 3*n*d, func(f dispatch) { ownDistances(f, x, n, d, rows, near, out) })
	benchForms(b, "AccumulateCentroids"+at, size*n*d, n*d, func(f dispatch) { accumulateCentroids(f, x, n, d, nil, near, sums, 0) })
}

func BenchmarkCentreForms(b *testing.B) {
	for _, s := range []struct{ d, k int }{{16, 10}, {32, 64}, {100, 256}} {
		benchCentres[float64](b, "float64", 8, 1000, s.d, s.k)
		benchCentres[float32](b, "float32", 4, 1000, s.d, s.k)
	}
}
