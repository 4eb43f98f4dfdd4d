package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naiveCosine is NearestCosine by its definition, for rows whose squares neither overflow nor
// underflow.
func naiveCosine(x, centers []float64, k, d int) (int, float64) {
	var s float64
	for _, v := range x {
		s += float64(v * v)
	}
	inv := 0.0
	if s > 0 {
		inv = 1 / math.Sqrt(s)
	}
	best, arg := math.Inf(-1), -1
	for a := range k {
		var p float64
		for j := range d {
			p += float64(x[j] * centers[a*d+j])
		}
		if p > best {
			best, arg = p, a
		}
	}
	return arg, math.Min(math.Max(1-float64(best*inv), 0), 2)
}

// unitRows scales each row of centers to norm 1.
func unitRows(centers []float64, k, d int) {
	for a := range k {
		row := centers[a*d : (a+1)*d]
		if pre, inv, ok := direction(row); ok {
			for j := range row {
				row[j] = row[j] * pre * inv
			}
		}
	}
}

func TestCosineEqualsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		style := rapid.SampledFrom([]int{0, 1, 2, 6}).Draw(t, "style")
		k := rapid.IntRange(1, 35).Draw(t, "k")
		d := rapid.IntRange(1, 19).Draw(t, "d")
		n := rapid.IntRange(0, 67).Draw(t, "n")
		x := fill(rng, make([]float64, n*d), style)
		centers := fill(rng, make([]float64, k*d), style)
		unitRows(centers, k, d)
		var w []float64
		if rapid.Bool().Draw(t, "weighted") {
			w = fill(rng, make([]float64, n), 6)
		}
		c := NewCenters(k, d)
		c.Set(centers)
		assign, dist := make([]int32, n), make([]float64, n)
		AssignCosine(x, n, c, assign, dist)
		sums, inertia := make([]float64, k*(d+1)), 0.25
		for i := range n {
			row := x[i*d : (i+1)*d]
			want, wantDist := naiveCosine(row, centers, k, d)
			require.Equal(t, want, int(assign[i]))
			requireBits(t, []float64{wantDist}, dist[i:i+1])
			near, nearDist := NearestCosine(row, c)
			require.Equal(t, want, near)
			requireBits(t, []float64{wantDist}, []float64{nearDist})
			inv := 0.0
			if s := Dot(row, row); s > 0 {
				inv = 1 / math.Sqrt(s)
			}
			for j, v := range row {
				sums[want*(d+1)+j] += float64(weight(w, i) * float64(v*inv))
			}
			sums[want*(d+1)+d] += weight(w, i)
			inertia += float64(weight(w, i) * float64(wantDist*wantDist))
		}
		got := make([]float64, k*(d+1))
		AccumulateCosine(x, n, d, w, assign, got)
		requireBits(t, sums, got)
		for _, to := range [][]float64{nil, make([]float64, n)} {
			clear(got)
			again := make([]int32, n)
			requireBits(t, []float64{inertia}, []float64{AssignAccumulateCosine(x, n, c, w, again, to, got, 0.25)})
			requireBits(t, sums, got)
			require.Equal(t, assign, again)
			if to != nil {
				requireBits(t, dist, to)
			}
		}
	})
}

// TestCosineOfExtremeRows scales rows so that their squares overflow or underflow. It requires
// the same results as without scaling, because the direction is the same.
func TestCosineOfExtremeRows(t *testing.T) {
	const k, d = 11, 6
	rng := rand.New(rand.NewPCG(25, 26))
	centers := fill(rng, make([]float64, k*d), 6)
	unitRows(centers, k, d)
	c, sparse := NewCenters(k, d), NewSparseCenters(k, d)
	c.Set(centers)
	sparse.Set(centers)
	col := []int32{0, 1, 2, 3, 4, 5}
	for range 200 {
		x := fill(rng, make([]float64, d), 6)
		want, wantDist := NearestCosine(x, c)
		for _, e := range []int{-900, -500, 500, 900, 1019} {
			y := make([]float64, d)
			for j := range x {
				y[j] = math.Ldexp(x[j], e)
			}
			near, dist := NearestCosine(y, c)
			require.Equal(t, want, near)
			require.InDelta(t, wantDist, dist, 1e-15)
			near, sparseDist := NearestSparseCosine(col, y, sparse)
			require.Equal(t, want, near)
			requireBits(t, []float64{dist}, []float64{sparseDist})
			for _, sums := range [][]float64{make([]float64, k*(d+1))} {
				AccumulateCosine(y, 1, d, nil, []int32{0}, sums)
				require.InDelta(t, 1, Dot(sums[:d], sums[:d]), 1e-14)
			}
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		near, dist := NearestCosine([]float64{1, v, 0, 0, 0, 0}, c)
		require.Equal(t, -1, near)
		require.True(t, math.IsNaN(dist))
	}
	near, dist := NearestCosine(make([]float64, d), c)
	require.Equal(t, 0, near)
	require.Equal(t, 1.0, dist)
	near, dist = NearestCosine([]float64{5e-324, 0, 0, 0, 0, 0}, c)
	want, wantDist := NearestCosine([]float64{1, 0, 0, 0, 0, 0}, c)
	require.Equal(t, want, near)
	require.Equal(t, wantDist, dist)
}

// csr returns the non-zero values of the n dense rows of x as a CSR block.
func csr(x []float64, n, d int) CSR {
	s := CSR{RowPtr: []int64{0}}
	for i := range n {
		for j := range d {
			if v := x[i*d+j]; v != 0 {
				s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
			}
		}
		s.RowPtr = append(s.RowPtr, int64(len(s.Val)))
	}
	return s
}

func TestSparseEqualsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		style := rapid.SampledFrom([]int{0, 2, 6}).Draw(t, "style")
		k := rapid.IntRange(1, 18).Draw(t, "k")
		d := rapid.IntRange(1, 40).Draw(t, "d")
		n := rapid.IntRange(0, 67).Draw(t, "n")
		x := fill(rng, make([]float64, n*d), style)
		for i := range x {
			if rng.IntN(4) > 0 {
				x[i] = 0
			}
		}
		centers := fill(rng, make([]float64, k*d), style)
		unit := append([]float64(nil), centers...)
		unitRows(unit, k, d)
		var w []float64
		if rapid.Bool().Draw(t, "weighted") {
			w = fill(rng, make([]float64, n), 6)
		}
		s := csr(x, n, d)
		c := NewSparseCenters(k, d)
		dense, units := NewCenters(k, d), NewCenters(k, d)
		dense.Set(centers)
		units.Set(unit)
		for _, cosine := range []bool{false, true} {
			assign, dist := make([]int32, n), make([]float64, n)
			again, to := make([]int32, n), make([]float64, n)
			sums, got := make([]float64, k*(d+1)), make([]float64, k*(d+1))
			var inertia, want float64
			if cosine {
				c.Set(unit)
				AssignSparseCosine(s, c, assign, dist)
				AccumulateCosine(x, n, d, w, assign, sums)
				inertia = AssignAccumulateSparseCosine(s, c, w, again, to, got, 0)
			} else {
				c.Set(centers)
				AssignSparse(s, c, assign, dist)
				AccumulateCentroids(x, n, d, w, assign, sums)
				inertia = AssignAccumulateSparse(s, c, w, again, to, got, 0)
			}
			for i := range n {
				row := x[i*d : (i+1)*d]
				if cosine {
					near, v := NearestCosine(row, units)
					require.Equal(t, near, int(assign[i]), "row %d must have the centre of NearestCosine", i)
					requireBits(t, []float64{v}, dist[i:i+1])
					continue
				}
				near, v := Nearest(row, dense)
				require.Equal(t, near, int(assign[i]), "row %d must have the centre of Nearest", i)
				requireClose(t, v, dist[i])
			}
			want = Inertia(n, w, dist, 0)
			require.Equal(t, assign, again)
			requireBits(t, dist, to)
			requireBits(t, sums, got)
			requireBits(t, []float64{want}, []float64{inertia})
		}
	})
}

// requireClose requires that two distances agree to the accuracy of NearestSparse.
func requireClose(t require.TestingT, want, got float64) {
	if math.IsNaN(want) || math.IsInf(want, 0) || want == 0 {
		require.Equal(t, math.Float64bits(want), math.Float64bits(got))
		return
	}
	require.InEpsilon(t, want, got, 1e-10)
}

// TestSparseFarFromTheOrigin adds a large offset to rows and centres, and requires that
// NearestSparse still finds the nearest centres. Times in seconds, for example, have such an
// offset.
func TestSparseFarFromTheOrigin(t *testing.T) {
	for _, offset := range []float64{0, 1, 1e3, 1e8, 1.7e9, 1e10, 1e15} {
		const k, d, n = 5, 3, 60
		centers, x := make([]float64, k*d), make([]float64, n*d)
		for a := range k {
			centers[a*d], centers[a*d+2] = offset+float64(10*a), -offset
		}
		for i := range n { // some rows are halfway between two centres, some equal a centre
			x[i*d], x[i*d+2] = offset+float64(i%10)*5, -offset+float64(i%3)
		}
		dense, sparse := NewCenters(k, d), NewSparseCenters(k, d)
		dense.Set(centers)
		sparse.Set(centers)
		s := csr(x, n, d)
		for i := range n {
			near, dist := Nearest(x[i*d:(i+1)*d], dense)
			col, val := s.Row(i)
			got, v := NearestSparse(col, val, sparse)
			require.Equal(t, near, got, "offset %v row %d", offset, i)
			requireClose(t, dist, v)
		}
	}
}

func TestSparseBadValues(t *testing.T) {
	c := NewSparseCenters(3, 2)
	c.Set([]float64{math.NaN(), 0, 1, 1, 2, 2})
	near, _ := NearestSparse([]int32{0, 1}, []float64{1, 1}, c)
	require.Equal(t, 1, near)
	near, dist := NearestSparse([]int32{1}, []float64{math.NaN()}, c)
	require.Equal(t, -1, near)
	require.True(t, math.IsNaN(dist))
	near, dist = NearestSparse(nil, nil, c)
	require.Equal(t, 1, near)
	require.Equal(t, math.Sqrt2, dist)
	require.Zero(t, CSR{}.Rows())
}

func BenchmarkOtherDistances(b *testing.B) {
	const n, d, k = 2048, 64, 16
	rng := rand.New(rand.NewPCG(27, 28))
	x, centers := blobs(n, d, k, 0.5)
	assign, sums := make([]int32, n), make([]float64, k*(d+1))
	c := NewCenters(k, d)
	unitRows(centers, k, d)
	c.Set(centers)
	b.Run("cosine", func(b *testing.B) {
		for b.Loop() {
			AssignAccumulateCosine(x, n, c, nil, assign, nil, sums, 0)
		}
		reportPair(b, n*d*k)
	})
	for i := range x {
		if rng.IntN(8) > 0 {
			x[i] = 0
		}
	}
	s, sc := csr(x, n, d), NewSparseCenters(k, d)
	sc.Set(centers)
	b.Run("sparse", func(b *testing.B) {
		for b.Loop() {
			AssignAccumulateSparse(s, sc, nil, assign, nil, sums, 0)
		}
		reportPair(b, len(s.Val)*k)
	})
}
