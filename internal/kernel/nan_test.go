// These tests run on one goroutine, where the race detector finds nothing.

//go:build !race

package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// specialFloats are NaN of both signs and several payloads, quiet and signalling, and
// infinities, for whose difference the processor makes a NaN.
var specialFloats = []float64{
	math.Float64frombits(0x7ff8000000000000), math.Float64frombits(0xfff8000000000000), math.Float64frombits(0x7ff0000000000abc),
	math.Float64frombits(0xfffc00000000beef), math.Inf(1), math.Inf(-1), 0, 3,
}

// requireOneNaN requires that x has at least one NaN, and that all NaN in x have the same bits.
func requireOneNaN[T Float](t *testing.T, x []T, what string) {
	t.Helper()
	some := false
	for i, v := range x {
		if v != v {
			some = true
			want, got := uint64(0x7ff8000000000001), math.Float64bits(float64(v))
			if !is64[T]() {
				want, got = 0x7fc00000, uint64(math.Float32bits(float32(v)))
			}
			require.Equal(t, want, got, "%s: element %d", what, i)
		}
	}
	require.True(t, some, "%s: there must be a NaN", what)
}

func testOneNaN[T Float](t *testing.T) {
	var values []T
	for _, v := range specialFloats {
		if is64[T]() {
			values = append(values, T(v))
		} else {
			values = append(values, T(math.Float32frombits(uint32(math.Float64bits(v)>>32)|1)), T(float32(v)))
		}
	}
	// Every ordered triple of specialFloats is placed at every position of rows whose lengths
	// are close to the numbers of elements that the unrolled loops take.
	for d := 3; d <= 19; d++ {
		for i := range values {
			for j := range values {
				x := make([]T, 17*d)
				ones := make([]T, d)
				for r := range 17 {
					for c := range d {
						ones[c], x[r*d+c] = 1, T(r+c)
					}
					x[r*d+r%d], x[r*d+(r+1)%d], x[r*d+(r+2)%d] = values[i], values[j], values[(i+j+r)%len(values)]
				}
				what := fmt.Sprint("d=", d, " ", i, " ", j)
				out := make([]T, 17)
				DotRows(x, 17, d, ones, out)
				for r := range 17 {
					row := x[r*d : r*d+d]
					if dot := Dot(row, ones); dot != dot {
						requireOneNaN(t, []T{dot, out[r]}, what)
					}
				}
				RowNorms(x, d, out)
				for r := range 17 {
					if norm := Dot(x[r*d:r*d+d], x[r*d:r*d+d]); norm != norm {
						requireOneNaN(t, []T{norm, out[r]}, what)
					}
				}
				// The rows are folded in two orders, and OneNaN is called after each fold.
				for _, step := range []func(dst, src []T){AddTo[T], ProdTo[T], func(dst, src []T) { Axpy(1, src, dst) }} {
					up, down := slices.Clone(x[:d]), slices.Clone(x[16*d:])
					for r := 1; r < 17; r++ {
						step(up, x[r*d:(r+1)*d])
						step(down, x[(16-r)*d:(17-r)*d])
					}
					for _, got := range [][]T{up, down} {
						if OneNaN(got); slices.ContainsFunc(got, func(v T) bool { return v != v }) {
							requireOneNaN(t, got, what)
						}
					}
				}
			}
		}
	}
}

// TestOneNaN requires that sums, products and inner products of various NaN, and of infinities
// that cancel out, give a NaN with the same bits, at all positions.
func TestOneNaN(t *testing.T) {
	testOneNaN[float64](t)
	testOneNaN[float32](t)
	// Other values are not changed: not infinities, even if the sum of a block that contains
	// them is NaN, and not integers.
	x := []float64{math.Inf(1), math.Inf(-1), 1, 2, 3, 4, 5, math.Copysign(0, -1), 7}
	want := slices.Clone(x)
	OneNaN(x)
	for i := range x {
		require.Equal(t, math.Float64bits(want[i]), math.Float64bits(x[i]))
	}
	OneNaN([]int64{1, 2})
	everyPlace[float64](t)
	everyPlace[float32](t)
	sumsOfEveryForm[float64](t)
	sumsOfEveryForm[float32](t)
	require.Zero(t, testing.AllocsPerRun(10, func() { OneNaN(x) }))
}

// everyPlace requires that every form finds a NaN at every position in slices whose lengths are
// close to the numbers of elements that the loops take, and does not change infinities.
func everyPlace[T Float](t *testing.T) {
	for name, form := range map[string]dispatch{"assembly": active, "go": {}} {
		for _, n := range []int{1, 15, 16, 17, 31, 32, 33, 64, 95, callSize, callSize + 33} {
			x := make([]T, n)
			for at := 0; at < n; at += max(1, n/97) {
				for i := range x {
					x[i] = T(math.Inf(1 - 2*(i%2)))
				}
				x[at] = T(math.Float64frombits(0xfff8000000000abc))
				oneNaN(form, x)
				requireOneNaN(t, x[at:at+1], name)
				for i, v := range x {
					if i != at && v != T(math.Inf(1-2*(i%2))) {
						t.Fatalf("%s: element %d of %d was changed to %v; the NaN is element %d", name, i, n, v, at)
					}
				}
			}
		}
	}
}

// sumsOfEveryForm tests sums with a NaN at each position. The NaN comes from an operand or from
// infinities. The result is written to separate memory, or over either operand.
func sumsOfEveryForm[T Float](t *testing.T) {
	for name, form := range map[string]dispatch{"assembly": active, "go": {}} {
		for _, n := range []int{1, 15, 16, 17, 32, 33, 95, callSize + 33} {
			for at := 0; at < n; at += max(1, n/97) {
				x, y, want := make([]T, n), make([]T, n+3), make([]T, n)
				for i := range x {
					x[i], y[i] = T(i)+0.1, T(2*i)-0.7
					want[i] = x[i] + y[i]
				}
				if x[at], y[at] = T(math.Inf(1)), T(math.Inf(-1)); at%2 == 1 {
					x[at] = T(math.Float64frombits(0xfff8000000000abc))
				}
				for over, dst := range [][]T{make([]T, n), slices.Clone(x), slices.Clone(y[:n])} {
					a, b := x, y
					switch over {
					case 1:
						a = dst
					case 2:
						b = dst
					}
					sumTo(form, dst, a, b)
					requireOneNaN(t, dst[at:at+1], name)
					for i, v := range dst {
						if i != at && v != want[i] {
							t.Fatalf("%s over %d: element %d of %d is %v, want %v", name, over, i, n, v, want[i])
						}
					}
				}
			}
		}
	}
}

// TestOneNaNOfDistances requires that every NaN distance has the bits of math.NaN() in every
// form.
func TestOneNaNOfDistances(t *testing.T) {
	const d = 5
	x, center := make([]float64, d), make([]float64, d)
	for i := range x {
		x[i], center[i] = specialFloats[i*3%len(specialFloats)], specialFloats[i*7%len(specialFloats)]
	}
	requireOneNaN(t, []float64{SquaredDistance(x, center)}, "distance")
	out := make([]float64, 2)
	m := CSR{RowPtr: []int64{0, 2, 5}, Col: []int32{0, 1, 0, 2, 4}, Val: []float64{specialFloats[1], specialFloats[3], specialFloats[4], specialFloats[5], 1}}
	DotCSR(m, []float64{1, 1, 1, 1, 1}, out)
	requireOneNaN(t, out, "sparse rows")
}

func TestNonFinite(t *testing.T) {
	require.Equal(t, -1, NonFinite[float64](nil))
	require.Equal(t, -1, NonFinite([]float64{0, math.Copysign(0, -1), math.MaxFloat64, -math.MaxFloat64, 5e-324}))
	require.Equal(t, -1, NonFinite([]float32{0, math.MaxFloat32, -math.MaxFloat32, 1e-45}))
	for _, v := range specialFloats {
		want := 2
		if v-v == 0 {
			want = 3
		}
		require.Equal(t, want, NonFinite([]float64{1, -2, v, math.Inf(1)}))
		require.Equal(t, want, NonFinite([]float32{1, -2, float32(v), float32(math.NaN())}))
	}
}

func TestSoftmax(t *testing.T) {
	for _, x := range [][]float64{{0}, {1, 2, 3}, {-1000, 700, 700}, {1e-300, -1e-300, 5, -40, 2, 2}} {
		shares := slices.Clone(x)
		largest, sum := Softmax(shares)
		require.Equal(t, slices.Max(x), largest)
		var all, total float64
		for i, v := range x {
			require.Equal(t, Exp(v-largest)/sum, shares[i])
			all += Exp(v - largest)
			total += shares[i]
		}
		require.Equal(t, all, sum)
		require.InDelta(t, 1, total, 1e-15)
	}
	for _, x := range [][]float64{{1, math.NaN(), 2}, {math.Inf(1), 0}, {math.Inf(-1), math.Inf(-1)}} {
		Softmax(x)
		for _, v := range x {
			require.True(t, math.IsNaN(v))
		}
	}
}
