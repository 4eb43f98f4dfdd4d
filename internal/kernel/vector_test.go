package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// matrix returns an n by d matrix and vectors of lengths d and n, at an offset
// into their arrays.
func matrix[T Float](rng *rand.Rand, n, d, offset int) (x, w, c []T) {
	draw := func(n int) []T {
		s := make([]T, offset+n)[offset:]
		for i := range s {
			s[i] = T(hostile(rng, 2))
		}
		return s
	}
	return draw(n * d), draw(d), draw(n)
}

// bits returns x as text with all bits, for readable comparisons. All NaN have the same text.
func bits[T Float](x []T) []string {
	s := make([]string, len(x))
	for i, v := range x {
		s[i] = fmt.Sprintf("%x", v)
		if v == 0 && math.Signbit(float64(v)) {
			s[i] = "-0"
		}
	}
	return s
}

func testVectors[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	for d := range 68 {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 67} {
			x, w, c := matrix[T](rng, n, d, (n+d)%4)
			dots, norms := make([]T, n), make([]T, n)
			grad := append([]T(nil), w...)
			for i := range n {
				var dot, norm T
				for j := range d {
					v := x[i*d+j]
					dot += T(v * w[j])
					norm += T(v * v)
					grad[j] += T(c[i] * v)
				}
				dots[i], norms[i] = dot, norm
			}
			got := make([]T, n)
			DotRows(x, n, d, w, got)
			require.Equal(t, bits(dots), bits(got), "n=%d d=%d", n, d)
			RowNorms(x, d, got)
			require.Equal(t, bits(norms), bits(got), "n=%d d=%d", n, d)
			for i := range n {
				require.Equal(t, dots[i], Dot(x[i*d:(i+1)*d], w))
			}
			out := append([]T(nil), w...)
			AddScaledRows(x, n, d, c, out)
			require.Equal(t, bits(grad), bits(out), "n=%d d=%d", n, d)
		}
		x, w, _ := matrix[T](rng, 1, d, d%3)
		axpy, scaled := append([]T(nil), w...), append([]T(nil), w...)
		for j := range d {
			axpy[j] += T(3 * x[j])
			scaled[j] *= 3
		}
		got := append([]T(nil), w...)
		Axpy(3, x, got)
		require.Equal(t, bits(axpy), bits(got))
		Scale(3, w)
		require.Equal(t, bits(scaled), bits(w))
	}
}

func TestVectors(t *testing.T) {
	t.Run("float64", testVectors[float64])
	t.Run("float32", testVectors[float32])
}

func testReduce[T Number](t *testing.T, draw func() T) {
	for n := range 68 {
		a, b := make([]T, n+3)[n%4:n%4+n], make([]T, n+1)[1:] // unaligned
		for i := range b {
			a[i], b[i] = draw(), draw()
		}
		for name, op := range map[string]struct {
			to  func(dst, src []T)
			one func(a, b T) T
		}{
			"add": {AddTo[T], func(a, b T) T { return a + b }},
			"sum": {func(dst, src []T) { SumTo(dst, dst, src) }, func(a, b T) T { return a + b }},
			"sum over right": {func(dst, src []T) {
				out := slices.Clone(src)
				SumTo(out[:len(dst)], dst, out)
				copy(dst, out)
			}, func(a, b T) T { return a + b }},
			"prod": {ProdTo[T], func(a, b T) T { return a * b }},
			"max": {MaxTo[T], func(a, b T) T {
				if b > a {
					return b
				}
				return a
			}},
			"min": {MinTo[T], func(a, b T) T {
				if b < a {
					return b
				}
				return a
			}},
		} {
			want, got := make([]T, n), make([]T, n)
			copy(got, a)
			for i := range want {
				want[i] = op.one(a[i], b[i])
			}
			op.to(got, append(b[:n:n], 1)) // src may be longer than dst
			require.Equal(t, want, got, "%s n=%d", name, n)
		}
	}
}

func TestReduce(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	t.Run("float64", func(t *testing.T) { testReduce(t, func() float64 { return hostile(rng, 2) }) })
	t.Run("float32", func(t *testing.T) { testReduce(t, func() float32 { return float32(rng.NormFloat64()) }) })
	t.Run("int64", func(t *testing.T) { testReduce(t, func() int64 { return int64(rng.Uint64()) }) })
	t.Run("int32", func(t *testing.T) { testReduce(t, func() int32 { return int32(rng.Uint32()) }) })
	t.Run("uint8", func(t *testing.T) { testReduce(t, func() uint8 { return uint8(rng.Uint32()) }) })
}

// TestMaxMinDoNotDependOnOrder reduces NaN, zeros and other special values in random orders,
// and requires the same bits.
func TestMaxMinDoNotDependOnOrder(t *testing.T) {
	negZero := math.Copysign(0, -1)
	strange := math.Float64frombits(0xfff0dead0000beef)
	rng := rand.New(rand.NewPCG(21, 22))
	for _, c := range []struct{ values []float64 }{
		{[]float64{0, negZero}}, {[]float64{negZero, -1, 0}}, {[]float64{negZero, 1, 0}},
		{[]float64{1, strange, math.Inf(1)}}, {[]float64{strange, math.NaN(), -1}}, {[]float64{math.Inf(-1), math.Inf(1), 0}},
	} {
		var maxima, minima []string
		for range 12 {
			rng.Shuffle(len(c.values), func(i, j int) { c.values[i], c.values[j] = c.values[j], c.values[i] })
			hi, lo := []float64{c.values[0]}, []float64{c.values[0]}
			hi32, lo32 := []float32{float32(c.values[0])}, []float32{float32(c.values[0])}
			for _, v := range c.values[1:] {
				MaxTo(hi, []float64{v})
				MinTo(lo, []float64{v})
				MaxTo(hi32, []float32{float32(v)})
				MinTo(lo32, []float32{float32(v)})
			}
			maxima = append(maxima, fmt.Sprintf("%x %x", math.Float64bits(hi[0]), math.Float32bits(hi32[0])))
			minima = append(minima, fmt.Sprintf("%x %x", math.Float64bits(lo[0]), math.Float32bits(lo32[0])))
		}
		for i := range maxima {
			require.Equal(t, maxima[0], maxima[i], "%v", c.values)
			require.Equal(t, minima[0], minima[i], "%v", c.values)
		}
	}
	hi, lo := []float64{0, negZero, 1, strange}, []float64{0, negZero, 1, strange}
	MaxTo(hi, []float64{negZero, 0, math.NaN(), 1})
	MinTo(lo, []float64{negZero, 0, math.NaN(), 1})
	require.Equal(t, []string{"0x0p+00", "0x0p+00", "NaN", "NaN"}, bits(hi))
	require.Equal(t, []string{"-0", "-0", "NaN", "NaN"}, bits(lo))
	require.Equal(t, uint64(0x7ff8000000000001), math.Float64bits(hi[3]))
}

func BenchmarkVectors(b *testing.B) {
	const n, d = 512, 50
	rng := rand.New(rand.NewPCG(23, 24))
	x, w, c := matrix[float64](rng, n, d, 0)
	out := make([]float64, n)
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(n*d), "ns/element")
		})
	}
	run("Dot", func() { w[0] = Dot(x, x) })
	run("Axpy", func() { Axpy(1.5, x, x) })
	run("RowNorms", func() { RowNorms(x, d, out) })
	run("DotRows", func() { DotRows(x, n, d, w, out) })
	run("AddScaledRows", func() { AddScaledRows(x, n, d, c, w) })
}

func benchReduce[T Number](b *testing.B, size int, name string) {
	for _, n := range []int{1 << 10, 1 << 20} {
		dst, src := make([]T, n), make([]T, n)
		for op, f := range map[string]func(dst, src []T){"AddTo": AddTo[T], "MaxTo": MaxTo[T], "ProdTo": ProdTo[T]} {
			b.Run(fmt.Sprintf("%s/%s/%d", op, name, n), func(b *testing.B) {
				b.SetBytes(int64(n * size))
				for b.Loop() {
					f(dst, src)
				}
			})
		}
	}
}

func BenchmarkReduce(b *testing.B) {
	benchReduce[float64](b, 8, "float64")
	benchReduce[float32](b, 4, "float32")
	benchReduce[int64](b, 8, "int64")
	benchReduce[int32](b, 4, "int32")
	benchReduce[uint8](b, 1, "uint8")
}
