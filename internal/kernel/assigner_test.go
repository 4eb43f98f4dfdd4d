package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naiveAssign returns the nearest centre of row x and its squared distance, by the documented
// definition.
func naiveAssign[T Float](x, centers []T, k, d int) (int32, T) {
	best, at := T(math.NaN()), int32(-1)
	for a := range k {
		var acc T
		for j := range d {
			t := x[j] - centers[a*d+j]
			acc += T(t * t)
		}
		if acc < best || at < 0 && acc == acc {
			best, at = acc, int32(a)
		}
	}
	return at, best
}

// requireAssigned searches the nearest centres with every form, first with guesses that may be
// wrong and then with right guesses. It requires the results of the naive loops.
func requireAssigned[T Float](t require.TestingT, rng *rand.Rand, x []T, centers, w []float64, n, k, d int) {
	rows := make([]T, k*d)
	for i, v := range centers {
		rows[i] = T(v)
	}
	want, dist := make([]int32, n), make([]float64, n)
	for i := range n {
		var square T
		want[i], square = naiveAssign(x[i*d:(i+1)*d], rows, k, d)
		dist[i] = math.Sqrt(float64(square))
	}
	wide := make([]float64, n*d)
	for i, v := range x[:n*d] {
		wide[i] = float64(v)
	}
	sums := make([]float64, k*(d+1))
	inertia := naiveAccumulate(wide, n, d, w, want, dist, sums, 0.5)
	for _, form := range append([]dispatch{{}}, assembled...) {
		a := newAssigner[T](form, k, d)
		a.Set(centers)
		near := make([]int32, n)
		for i := range near {
			near[i] = int32(rng.IntN(k+2) - 1)
		}
		got := make([]float64, n)
		for range 2 {
			a.Assign(x, n, near, got)
			require.Equal(t, want, near, "%+v", form)
			requireBits(t, dist, got, form)
			gotSums := make([]float64, k*(d+1))
			requireBits(t, []float64{inertia}, []float64{a.Accumulate(x, n, w, near, gotSums, 0.5)}, form)
			requireBits(t, sums, gotSums, form)
			require.Equal(t, want, near, "%+v", form)
		}
		for i, v := range a.Reach() {
			for r := range n {
				if square := squaredDistance(x[r*d:(r+1)*d], rows[i*d:(i+1)*d]); square < v {
					require.Equal(t, int32(i), want[r])
				}
			}
		}
	}
}

func testAssigner[T Float](t *rapid.T) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	style := rapid.IntRange(0, 9).Draw(t, "style")
	k := rapid.IntRange(1, 40).Draw(t, "k")
	d := rapid.IntRange(0, 35).Draw(t, "d")
	n := rapid.SampledFrom([]int{0, 1, 5, 6, 7, 16, 31, 32, 33, 67, 127, 128, 129, 300}).Draw(t, "n")
	draw := func() float64 {
		switch style {
		case 7: // squares at the ends of the range of single precision
			return rng.NormFloat64() * math.Pow(2, float64(rng.IntN(3)*64-64))
		case 8: // values between neighbouring numbers of single precision
			return 1e8 + float64(rng.IntN(64))*0.01
		case 9:
			return rng.NormFloat64() * 0x1p-70
		}
		return hostile(rng, style)
	}
	x, centers := make([]T, n*d+3)[3:], make([]float64, k*d)
	for i := range x {
		x[i] = T(draw())
	}
	for i := range centers {
		centers[i] = draw()
	}
	if n > 0 {
		for a := range rapid.IntRange(0, k).Draw(t, "centres that are rows") {
			for j, v := range x[rng.IntN(n)*d:][:d] {
				centers[a*d+j] = float64(v)
			}
		}
	}
	var w []float64
	if rapid.Bool().Draw(t, "weighted") {
		w = fill(rng, make([]float64, n), 6)
	}
	requireAssigned(t, rng, x, centers, w, n, k, d)
}

func TestAssigner(t *testing.T) {
	t.Run("float64", func(t *testing.T) { rapid.Check(t, testAssigner[float64]) })
	t.Run("float32", func(t *testing.T) { rapid.Check(t, testAssigner[float32]) })
}

// TestAssignerWidths compares an Assigner with the naive loops for every width of filter
// panels, with and without padding.
func TestAssignerWidths(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for k := 1; k <= 50; k++ {
		for _, d := range []int{1, 7, 8, 9, 16, 17} {
			x, centers := blobs(40, d, k, 0.5)
			requireAssigned(t, rng, x, centers, nil, 40, k, d)
		}
	}
}

// nextAfter returns the number that is steps representable numbers away from v: farther from 0
// if steps is positive, closer if it is negative.
func nextAfter[T Float](v T, steps int) T {
	if is64[T]() {
		return T(math.Float64frombits(math.Float64bits(float64(v)) + uint64(steps)))
	}
	return T(math.Float32frombits(math.Float32bits(float32(v)) + uint32(steps)))
}

// testNearTies compares an Assigner with the naive loops for rows near the plane between two
// centres. Their distances from the plane have all orders of magnitude. For the largest
// distances the scores decide; for the smallest the last bit of a squared distance decides.
func testNearTies[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	const n = 128
	settled := 0
	for round := range 300 {
		d, k := 1+rng.IntN(20), 2+rng.IntN(12)
		offset := []float64{0, 1, 1e4, 1e8}[rng.IntN(4)]
		centers := make([]float64, k*d)
		for i := range centers {
			centers[i] = float64(T(offset + rng.NormFloat64()))
		}
		x := make([]T, n*d)
		for i := range n {
			one, two := rng.IntN(k), rng.IntN(k)
			step := math.Pow(2, -float64(rng.IntN(60)))
			for j := range d {
				p, q := centers[one*d+j], centers[two*d+j]
				x[i*d+j] = nextAfter(T(p/2+q/2+(p-q)*step), rng.IntN(5)-2)
			}
		}
		requireAssigned(t, rng, x, centers, nil, n, k, d)
		if f := newFilter[T](k, d); round%10 == 0 && active.avx512 {
			rows := make([]T, k*d)
			for i, v := range centers {
				rows[i] = T(v)
			}
			f.set(rows)
			for lo := 0; lo < n; lo += filterRows {
				todo := make([]int32, filterRows)
				for r := range todo {
					todo[r] = int32(lo + r)
				}
				bits := f.block(x, todo)
				for r, i := range todo {
					if want, _ := naiveAssign(x[int(i)*d:int(i+1)*d], rows, k, d); bits>>r&1 != 0 {
						require.Equal(t, want, f.near[r])
						settled++
					}
				}
			}
		}
	}
	if active.avx512 {
		require.Positive(t, settled)
	}
}

func TestNearTies(t *testing.T) {
	t.Run("float64", testNearTies[float64])
	t.Run("float32", testNearTies[float32])
}

// TestFilterSettlesOrdinaryRows requires that the scores decide for nearly all ordinary rows,
// wherever the origin is. Otherwise the filter would be correct, but useless. The scores must not
// decide for rows beyond the filter's range. Without AVX-512 there must be no filter.
func TestFilterSettlesOrdinaryRows(t *testing.T) {
	if !active.avx512 {
		require.Nil(t, newAssigner[float64](active, 2, 2).filter)
		return
	}
	for _, offset := range []float64{0, 1e6} {
		const n, d, k = 4096, 24, 30
		x, centers := blobs(n, d, k, 1)
		for i := range x {
			x[i] += offset
		}
		for i := range centers {
			centers[i] += offset
		}
		f := newFilter[float64](k, d)
		f.set(centers)
		require.True(t, f.usable)
		settled := 0
		for lo := 0; lo < n; lo += filterRows {
			todo := make([]int32, filterRows)
			for r := range todo {
				todo[r] = int32(lo + r)
			}
			for bits := f.block(x, todo); bits != 0; bits &= bits - 1 {
				settled++
			}
		}
		require.Greater(t, settled, n*99/100)
	}
	f := newFilter[float64](2, 1)
	f.set([]float64{-1, 1})
	x := []float64{5, math.NaN(), math.Inf(1), 1e30, -1e300, 1e-300, 0, -5}
	require.Equal(t, uint32(1<<0|1<<7), f.block(x, []int32{0, 1, 2, 3, 4, 5, 6, 7})&0xff)
	require.Equal(t, []int32{1, 0}, []int32{f.near[0], f.near[7]})
	// The squared distances of these rows are still finite in single precision; for rows
	// slightly farther away they would overflow.
	g := newFilter[float32](2, 1)
	g.set([]float32{-1e18, 1e18})
	require.Equal(t, uint32(1), g.block([]float32{4e18, 1.3e19}, []int32{0, 1})&3)
}

// TestFilterKnowsItsLimits requires that the filter is not used for centres beyond its range.
func TestFilterKnowsItsLimits(t *testing.T) {
	f := newFilter[float64](2, 1)
	for _, c := range []float64{math.NaN(), math.Inf(1), 1e300, 0x1p62} {
		f.set([]float64{-1, c})
		require.False(t, f.usable, c)
	}
	f.set([]float64{-1, 1})
	require.True(t, f.usable)
	g := newFilter[float32](2, 1)
	g.set([]float32{-1e18, 1e18})
	require.True(t, g.usable)
}

func TestAssignerAllocatesNothing(t *testing.T) {
	const n, d, k = 300, 9, 12
	x, centers := blobs(n, d, k, 1)
	a, near, dist, sums := NewAssigner[float64](k, d), make([]int32, n), make([]float64, n), make([]float64, k*(d+1))
	require.Zero(t, testing.AllocsPerRun(10, func() {
		a.Set(centers)
		a.Assign(x, n, near, dist)
		a.Accumulate(x, n, nil, near, sums, 0)
	}))
}

// TestAssignerRests tests ordinary chunks, followed by chunks in which guesses or scores are
// useless, followed by chunks in which all rows equal one centre. It requires right results for
// all of them.
func TestAssignerRests(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	const d, k = 5, 7
	var x []float64
	_, centers := blobs(1, d, k, 1)
	for part := range 60 {
		switch rows, _ := blobs(chunk, d, k, 0.01); part / 20 {
		case 0:
			x = append(x, rows...)
		case 1: // halfway between two centres
			for range chunk {
				for j := range d {
					x = append(x, centers[j]/2+centers[d+j]/2)
				}
			}
		default:
			x = append(x, slices.Repeat(centers[2*d:3*d], chunk)...)
		}
	}
	requireAssigned(t, rng, x, centers, nil, len(x)/d, k, d)
}

func ExampleAssigner() {
	a := NewAssigner[float64](2, 1)
	a.Set([]float64{0, 10})
	near, dist := make([]int32, 3), make([]float64, 3)
	a.Assign([]float64{1, 9, 5}, 3, near, dist)
	fmt.Println(near, dist)
	// Output: [0 1 0] [1 1 5]
}
