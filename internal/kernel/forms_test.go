package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests of this file compare the assembly with pure Go, bit for bit: at every length, at
// unaligned offsets, and with values that are infinite, subnormal, zero of either sign or not a
// number. Each slice is followed by guard values, which must not change.

// assembled has the forms in assembly that this processor can run.
var assembled = func() (list []dispatch) {
	if available().avx2 {
		list = append(list, dispatch{avx2: true})
	}
	if available().avx512 {
		list = append(list, available())
	}
	return list
}()

// difficultValues are values that are often handled wrongly.
var difficultValues = []float64{
	0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, -5e-324, 0x1p-1022, -0x1.fp-1030,
	math.MaxFloat64, -math.MaxFloat64, 1, -1, 0x1p-149, -0x1p-127, math.MaxFloat32, 1e-30, 1e30,
}

// mixed draws n values in a slice that begins at an offset of its array. They are ordinary
// values in style 0, include difficult values in style 1, and have many magnitudes in other
// styles. Guard values follow the slice.
func mixed[T Float](rng *rand.Rand, n, offset, style int) []T {
	s := make([]T, offset+n+guard)
	for i := range s {
		switch {
		case i >= offset+n:
			s[i] = guardValue
		case style == 1 && rng.IntN(8) == 0:
			s[i] = T(difficultValues[rng.IntN(len(difficultValues))])
		case style == 2:
			s[i] = T(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(25)-8)))
		default:
			s[i] = T(rng.NormFloat64())
		}
	}
	return s[offset : offset+n]
}

const (
	guard      = 16
	guardValue = 12345
)

// clone returns a copy of x and of the guard values after it.
func clone[T Float](x []T) []T {
	c := make([]T, len(x)+guard)
	copy(c, x[:len(x)+guard])
	return c[:len(x)]
}

// same requires that want and got have the same bits, except that all NaN count as equal. It
// also requires that the guard values of got are unchanged.
func same[T Float](t require.TestingT, want, got []T, msg ...any) {
	if !equalBits(want, got) {
		require.Equal(t, bits(want), bits(got), msg...)
	}
	for _, v := range got[:len(got)+guard][len(got):] {
		if v != guardValue {
			require.Fail(t, "the guard values after the slice must not be changed", msg...)
		}
	}
}

func equalBits[T Float](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i, v := range a {
		if v != b[i] && (v == v || b[i] == b[i]) || v == 0 && math.Signbit(float64(v)) != math.Signbit(float64(b[i])) {
			return false
		}
	}
	return true
}

// testElementwise compares all forms of every element-wise loop at one length.
func testElementwise[T Float](t *testing.T, rng *rand.Rand, n, offset, style int) {
	x, y := mixed[T](rng, n, offset, style), mixed[T](rng, n, (offset+3)%8, style)
	scalar := mixed[T](rng, 1, 0, style)[0]
	for name, run := range map[string]func(k dispatch, dst, src []T){
		"axpy":  func(k dispatch, dst, src []T) { axpy(k, scalar, src, dst) },
		"scale": func(k dispatch, dst, _ []T) { scaleBy(k, scalar, dst) },
		"add":   addTo[T],
		"prod":  prodTo[T],
	} {
		for _, aliased := range []bool{false, true} {
			want, from := clone(y), x
			if aliased {
				from = want
			}
			run(dispatch{}, want, from)
			for _, form := range assembled {
				got, from := clone(y), x
				if aliased {
					from = got
				}
				run(form, got, from)
				same(t, want, got, "%s n=%d offset=%d style=%d", name, n, offset, style)
			}
		}
	}
}

// testMargins compares all forms of the loops over margins at one length.
func testMargins(t *testing.T, rng *rand.Rand, n, offset, style int) {
	x, y := mixed[float64](rng, n, offset, style), mixed[float64](rng, n, (offset+3)%8, style)
	out, class := mixed[float64](rng, n, (offset+5)%8, style), make([]float64, n)
	for i := range class {
		class[i] = float64(rng.IntN(2))
	}
	at := fmt.Sprintf("n=%d offset=%d style=%d", n, offset, style)
	step := mixed[float64](rng, 1, 0, style)[0]
	compare(t, out, "addScaledTo "+at, func(f dispatch, out []float64) { addScaledTo(f, out, x, step, y) })
	compare(t, out, "addScaledTo itself "+at, func(f dispatch, out []float64) { addScaledTo(f, out, out, step, y) })
	compare(t, out, "signByClass "+at, func(f dispatch, out []float64) { signByClass(f, out, class, x) })
	compare(t, out, "signByClass itself "+at, func(f dispatch, out []float64) { signByClass(f, out, class, out) })
	compare(t, out, "drain "+at, func(f dispatch, out []float64) {
		from := clone(x)
		drain(f, out, from, nil, y, false)
		require.Equal(t, make([]float64, n), from)
	})
	z := mixed[float64](rng, n, (offset+2)%8, style)
	compare(t, out, "drain pair "+at, func(f dispatch, out []float64) {
		first, second := clone(x), clone(z)
		drain(f, out, first, second, y, false)
		require.Equal(t, make([]float64, n), first)
		require.Equal(t, make([]float64, n), second)
	})
	pair := make([]float64, n)
	DrainPair(pair, clone(x), clone(z), y)
	both := clone(out)
	AddTo(both, pair)
	compare(t, out, "drain pair onto "+at, func(f dispatch, out []float64) {
		first, second := clone(x), clone(z)
		drain(f, out, first, second, y, true)
		require.Equal(t, make([]float64, n), first)
		require.Equal(t, make([]float64, n), second)
		same(t, both, out, "DrainPair and AddTo "+at, f)
	})
	got := clone(out)
	signByClass(active, got, class, x)
	for i, c := range class {
		want := x[i]
		if c == 1 {
			want = -want
		}
		require.True(t, want == got[i] || want != want && got[i] != got[i])
	}
}

// testRows compares all forms of every product of a matrix with a vector at one shape.
func testRows[T Float](t *testing.T, rng *rand.Rand, n, d, offset, style int) {
	x, w := mixed[T](rng, n*d, offset, style), mixed[T](rng, d, (offset+1)%8, style)
	coef, out := mixed[T](rng, n, (offset+5)%8, style), mixed[T](rng, n, offset%3, 0)
	at := fmt.Sprintf("n=%d d=%d offset=%d style=%d", n, d, offset, style)
	compare(t, out, "dotRows "+at, func(f dispatch, out []T) { dotRows(f, x, n, d, w, out) })
	compare(t, out, "rowNorms "+at, func(f dispatch, out []T) { rowNorms(f, x, d, out) })
	compare(t, w, "addScaledRows "+at, func(f dispatch, out []T) { addScaledRows(f, x, n, d, coef, out) })
}

// compare runs a loop over copies of out in all forms, and requires the same results.
func compare[T Float](t require.TestingT, out []T, at string, run func(f dispatch, out []T)) {
	want := clone(out)
	run(dispatch{}, want)
	for _, form := range assembled {
		got := clone(out)
		run(form, got)
		same(t, want, got, at, form)
	}
}

func TestElementwiseForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for n := range 71 {
		for offset := range 8 {
			testElementwise[float64](t, rng, n, offset, (n+offset)%3)
			testElementwise[float32](t, rng, n, offset, (n+offset)%3)
			testMargins(t, rng, n, offset, (n+offset)%3)
		}
	}
	testMargins(t, rng, 3*callSize+5, 1, 0)
	testElementwise[float64](t, rng, 3*callSize+5, 1, 0)
	testElementwise[float32](t, rng, 3*callSize+5, 1, 0)
}

func TestRowForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	for d := range 71 {
		for n := range 71 {
			if formShapes == 1 && n > 20 && n != 33+d%32 {
				continue
			}
			offset, style := (n+d)%8, (n+d/2)%3
			testRows[float64](t, rng, n, d, offset, style)
			testRows[float32](t, rng, n, d, offset, style)
		}
	}
	testRows[float64](t, rng, 3*callSize/300+1, 300, 3, 1)
	testRows[float32](t, rng, 3*callSize/300+1, 300, 3, 1)
}

func FuzzForms(f *testing.F) {
	f.Add(uint64(1), uint8(9), uint8(11), uint8(3), uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, n, d, offset, style uint8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		testElementwise[float64](t, rng, int(n), int(offset%8), int(style%3))
		testElementwise[float32](t, rng, int(n), int(offset%8), int(style%3))
		testMargins(t, rng, int(n), int(offset%8), int(style%3))
		testRows[float64](t, rng, int(n), int(d), int(offset%8), int(style%3))
		testRows[float32](t, rng, int(n), int(d), int(offset%8), int(style%3))
	})
}

// TestFormOf requires that AVX-512 is chosen only if the processor has every extension that the
// assembly uses. Some processors have only AVX-512F, and hypervisors may mask single
// extensions.
func TestFormOf(t *testing.T) {
	all := features{avx2: true, avx512f: true, avx512dq: true, avx512vl: true}
	require.Equal(t, dispatch{avx2: true, avx512: true}, formOf(all))
	for name, lacking := range map[string]func(*features){
		"F": func(f *features) { f.avx512f = false }, "DQ": func(f *features) { f.avx512dq = false }, "VL": func(f *features) { f.avx512vl = false },
	} {
		has := all
		lacking(&has)
		require.Equal(t, dispatch{avx2: true}, formOf(has), name)
	}
	all.avx2 = false
	require.Equal(t, dispatch{}, formOf(all))
}

func TestChoose(t *testing.T) {
	all, narrow := dispatch{avx2: true, avx512: true}, dispatch{avx2: true}
	if raceDetector {
		all, narrow = dispatch{}, dispatch{}
	}
	for settings, want := range map[string]dispatch{
		"": all, "kernel.asm=on": all, "other=1,kernel.asm=off": {}, " kernel.asm=off ,x": {}, "kernel.asm": all,
		"kernel.asm=avx2": narrow, "kernel.asm=avx2,kernel.asm=off": {},
	} {
		require.Equal(t, want, choose(dispatch{avx2: true, avx512: true}, settings), settings)
		require.Equal(t, dispatch{}, choose(dispatch{}, settings), settings)
	}
}
