package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// singleForms are the names of the functions of float32, their references and the documented
// errors in ulp.
var singleForms = [singleCount]struct {
	name string
	ref  func(dst, src []float64)
	ulp  float64
}{
	exp32Of: {"exp32", ExpTo, 0.50001}, log32Of: {"log32", LogTo, 0.50001}, log1p32Of: {"log1p32", Log1pTo, 0.50001},
	sigmoid32Of: {"sigmoid32", SigmoidTo, 0.50001}, tanh32Of: {"tanh32", TanhTo, 0.50001},
}

// singleUlps returns the distance of got to the exact value in units of the last place of a
// float32 at that value; it is infinite if only one of the two is NaN, infinite or negative.
func singleUlps(got float32, exact float64) float64 {
	switch {
	case got != got || exact != exact:
		if got != got && exact != exact {
			return 0
		}
		return math.Inf(1)
	case math.Signbit(float64(got)) != math.Signbit(exact):
		return math.Inf(1)
	case math.IsInf(exact, 0):
		exact = math.Copysign(0x1p200, exact)
	}
	value, size := math.Abs(float64(got)), math.Abs(exact)
	if value > math.MaxFloat32 {
		value = 0x1p128 // the value after MaxFloat32, to which larger values round
		size = math.Min(size, value)
	}
	unit := 0x1p-149
	if size >= 0x1p-126 {
		power := math.Float64frombits(min(math.Float64bits(size), math.Float64bits(0x1p127)) &^ (1<<52 - 1))
		unit = float64(power * 0x1p-23)
	}
	return math.Abs(value-size) / unit
}

// TestSingles compares with the functions of float64, whose errors are negligible here, at all
// 2^32 arguments or at some spread over them.
func TestSingles(t *testing.T) {
	for f := range singleCount {
		t.Run(singleForms[f].name, func(t *testing.T) { testSingle(t, f) })
	}
}

func testSingle(t *testing.T, f single) {
	const block = 1 << 12
	src, dst := make([]float32, block), make([]float32, block)
	wide, ref := make([]float64, block), make([]float64, block)
	form, scalar := singleForms[f], f.scalar()
	worst, where := 0.0, float32(0)
	for next := uint64(0); next < 1<<32; {
		for i := range src {
			src[i] = math.Float32frombits(uint32(next))
			wide[i] = float64(src[i])
			next += singleStride
		}
		form.ref(ref, wide)
		applySingle(active, f, dst, src)
		for i, v := range dst {
			if u := singleUlps(v, ref[i]); u > worst {
				worst, where = u, src[i]
			}
			if own := scalar(src[i]); math.Float32bits(own) != math.Float32bits(v) {
				require.Equal(t, math.Float32bits(own), math.Float32bits(v), "%s(%x)", form.name, src[i])
			}
		}
	}
	require.LessOrEqual(t, worst, form.ulp, "%s(%x) = %x", form.name, where, scalar(where))
	t.Logf("%.7f ulp at %x", worst, where)
}

func TestPow32WithinUlps(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	worst := 0.0
	check := func(x, y float32) {
		got, exact := Pow32(x, y), Pow(float64(x), float64(y))
		u := singleUlps(got, exact)
		require.LessOrEqual(t, u, 0.5001, "pow32(%x, %x) = %x", x, y, got)
		worst = math.Max(worst, u)
	}
	for range 5 * ulpPoints {
		x := math.Float32frombits(rng.Uint32() &^ (1 << 31))
		check(x, math.Float32frombits(rng.Uint32()))
		check(-x, float32(rng.IntN(40)-20))
		check(x, float32(float64(rng.Float32()*210-105)/math.Log(float64(x)))) // results everywhere
		near := 1 + float32(math.Ldexp(rng.Float64()-0.5, -rng.IntN(24)))
		check(near, float32((rng.Float64()*180-90)/math.Log(float64(near)))) // large exponents
	}
	t.Logf("pow32 %.7f ulp", worst)
	require.Equal(t, float32(59049), Pow32(3, 10))
	require.Equal(t, float32(-27), Pow32(-3, 3))
	require.Equal(t, float32(3), Pow32(9, 0.5))
	require.Equal(t, float32(1e10), Pow32(10, 10))
}

// Special cases are the same as for float64.
func TestSinglesOfStrangeArguments(t *testing.T) {
	inf, nan, negZero, least := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1)), float32(0x1p-149)
	for _, c := range []struct {
		name      string
		got, want float32
	}{
		{"exp(inf)", Exp32(inf), inf}, {"exp(-inf)", Exp32(-inf), 0}, {"exp(-0)", Exp32(negZero), 1}, {"exp(nan)", Exp32(nan), nan},
		{"exp(88.72284)", Exp32(88.72284), inf}, {"exp(88.72283)", Exp32(88.72283), 3.4027985e38}, {"exp(-103.9)", Exp32(-103.9), least}, {"exp(-104)", Exp32(-104), 0},
		{"log(inf)", Log32(inf), inf}, {"log(0)", Log32(0), -inf}, {"log(-0)", Log32(negZero), -inf}, {"log(-1)", Log32(-1), nan}, {"log(nan)", Log32(nan), nan}, {"log(1)", Log32(1), 0},
		{"log1p(inf)", Log1p32(inf), inf}, {"log1p(-1)", Log1p32(-1), -inf}, {"log1p(-2)", Log1p32(-2), nan}, {"log1p(-inf)", Log1p32(-inf), nan}, {"log1p(-0)", Log1p32(negZero), negZero},
		{"log1p(least)", Log1p32(least), least}, {"log1p(nan)", Log1p32(nan), nan},
		{"sigmoid(inf)", Sigmoid32(inf), 1}, {"sigmoid(-inf)", Sigmoid32(-inf), 0}, {"sigmoid(0)", Sigmoid32(0), 0.5}, {"sigmoid(nan)", Sigmoid32(nan), nan},
		{"tanh(inf)", Tanh32(inf), 1}, {"tanh(-inf)", Tanh32(-inf), -1}, {"tanh(-0)", Tanh32(negZero), negZero}, {"tanh(-least)", Tanh32(-least), -least}, {"tanh(nan)", Tanh32(nan), nan},
		{"pow(-0,-3)", Pow32(negZero, -3), -inf}, {"pow(nan,0)", Pow32(nan, 0), 1}, {"pow(-2,0.5)", Pow32(-2, 0.5), nan}, {"pow(2,inf)", Pow32(2, inf), inf}, {"pow(2,-150)", Pow32(2, -150), 0},
		{"pow(2,-149)", Pow32(2, -149), least}, {"pow(2,128)", Pow32(2, 128), inf}, {"pow(1,max)", Pow32(1, math.MaxFloat32), 1},
	} {
		require.Equal(t, math.Float32bits(c.want), math.Float32bits(c.got), "%s = %v, want %v", c.name, c.got, c.want)
	}
}

// guarded returns a copy of x at an offset, with a guard behind it.
func guarded[T Float](x []T, offset int) []T {
	s := make([]T, offset+len(x)+guard)
	copy(s[offset:], x)
	for i := range guard {
		s[offset+len(x)+i] = guardValue
	}
	return s[offset : offset+len(x)]
}

// testElementwiseFunction compares the forms of a function of one or two slices with
// its scalar form, at an offset, apart and in place of each of them.
func testElementwiseFunction[T Float](t require.TestingT, name string, scalar func(x, y T) T, run func(k dispatch, dst, x, y []T), x, y []T, offset int) {
	want := guarded(x, 0)
	for i, v := range x {
		want[i] = scalar(v, y[i])
	}
	for _, form := range append([]dispatch{{}}, assembled...) {
		for place := range 3 {
			a, b := guarded(x, offset), guarded(y, (offset+3)%8)
			dst := [...][]T{guarded(make([]T, len(x)), 7-offset), a, b}[place]
			run(form, dst, a, b)
			same(t, want, dst, "%s %+v n=%d offset=%d place=%d", name, form, len(x), offset, place)
		}
	}
}

// testSingles runs all functions of float32, and the power of float64.
func testSingles(t require.TestingT, x, y []float32, wideX, wideY []float64, offset int) {
	for f := range singleCount {
		scalar := f.scalar()
		testElementwiseFunction(t, singleForms[f].name, func(x, _ float32) float32 { return scalar(x) },
			func(k dispatch, dst, x, _ []float32) { applySingle(k, f, dst, x) }, x, y, offset)
	}
	testElementwiseFunction(t, "pow32", Pow32, pow32To, x, y, offset)
	testElementwiseFunction(t, "pow", Pow, powTo, wideX, wideY, offset)
}

func TestSingleAndPowerForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 74))
	for n := range 36 {
		for offset := range 8 {
			x, y := mixed[float32](rng, n, 0, (n+offset)%3), mixed[float32](rng, n, 0, offset%3)
			wideX, wideY := mixed[float64](rng, n, 0, (n+offset)%3), mixed[float64](rng, n, 0, offset%3)
			for i := range x {
				if rng.IntN(4) > 0 { // arguments that the assembly takes
					x[i], wideX[i] = float32(math.Abs(float64(x[i]))), math.Abs(wideX[i])
				}
			}
			testSingles(t, x, y, wideX, wideY, offset)
		}
	}
	x, y := make([]float64, 400), make([]float64, 400)
	for range formPoints {
		for i := range x {
			x[i] = math.Abs(math.Float64frombits(rng.Uint64()))
			y[i] = (rng.Float64()*1500 - 750) / math.Log(x[i])
			switch i % 16 {
			case 3:
				x[i] = 1 + math.Ldexp(rng.Float64()-0.5, -rng.IntN(52))
			case 5:
				y[i] = math.Float64frombits(rng.Uint64())
			}
		}
		testElementwiseFunction(t, "pow", Pow, powTo, x, y, 1)
	}
}

func FuzzSingleAndPowerForms(f *testing.F) {
	f.Add(1.5, -2.0, 3e-20, 40.0, uint8(1))
	f.Fuzz(func(t *testing.T, a, b, c, d float64, offset uint8) {
		wideX := []float64{a, b, c, d, math.Abs(a), math.Abs(b), math.Abs(c), math.Abs(d), a * b, c + d, b / c, 1 + a}
		x, y, wideY := make([]float32, len(wideX)), make([]float32, len(wideX)), make([]float64, len(wideX))
		for i, v := range wideX {
			wideY[i] = wideX[(5*i+1)%len(wideX)]
			x[i], y[i] = float32(v), float32(wideY[i])
		}
		testSingles(t, x, y, wideX, wideY, int(offset%8))
	})
}

// A common exponent gives the same results as an exponent for each element.
func TestPowByTo(t *testing.T) {
	rng := rand.New(rand.NewPCG(75, 76))
	for _, n := range []int{0, 1, 63, 64, 65, 200} {
		x := mixed[float64](rng, n, 0, 1)
		for _, y := range []float64{-1.5, 0, 0.5, 2} {
			got := guarded(make([]float64, n), 0)
			PowByTo(got, x, y)
			want := guarded(x, 0)
			for i, v := range x {
				want[i] = Pow(v, y)
			}
			same(t, want, got)
		}
	}
}

func BenchmarkSingles(b *testing.B) {
	const n = 1000
	rng := rand.New(rand.NewPCG(77, 78))
	src, dst, power := make([]float32, n), make([]float32, n), make([]float32, n)
	wide, to, wideBy := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range src {
		wide[i], wideBy[i] = math.Abs(rng.NormFloat64()*3), rng.NormFloat64()
		src[i], power[i] = float32(wide[i]), float32(wideBy[i])
	}
	for _, form := range forms {
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/%s", name, form.name), func(b *testing.B) {
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
			})
		}
		for f := range singleCount {
			run(singleForms[f].name, func() { applySingle(form.k, f, dst, src) })
		}
		run("pow32", func() { pow32To(form.k, dst, src, power) })
		run("pow", func() { powTo(form.k, to, wide, wideBy) })
	}
}
