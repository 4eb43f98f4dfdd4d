package kernel

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// elementary lists the functions of one argument: for each, its reference, the range of
// arguments for which the reference is used, and the documented error in ulp.
var elementary = []struct {
	name   string
	f      func(float64) float64
	ref    func(x *big.Float) *big.Float
	lo, hi float64
	ulp    float64
}{
	{"exp", Exp, bigExp, -745, 709.7, 0.52},
	{"exp2", Exp2, func(x *big.Float) *big.Float { return bigExp(bigNew().Mul(x, bigLn2)) }, -1074, 1023.9, 0.53},
	{"expm1", Expm1, bigExpm1, -50, 709.7, 0.55},
	{"log", Log, bigLog, 5e-324, math.MaxFloat64, 0.51},
	{"log2", Log2, func(x *big.Float) *big.Float { return bigNew().Quo(bigLog(x), bigLn2) }, 5e-324, math.MaxFloat64, 0.51},
	{"log1p", Log1p, bigLog1p, -0x1.fffffffffffffp-1, math.MaxFloat64, 0.51},
	{"sigmoid", Sigmoid, func(x *big.Float) *big.Float {
		return bigNew().Quo(bf(1), bigNew().Add(bf(1), bigExp(bigNew().Neg(x))))
	}, -745, 60, 1.1},
	{"tanh", Tanh, func(x *big.Float) *big.Float {
		e := bigExpm1(bigNew().Mul(x, bf(2)))
		return bigNew().Quo(e, bigNew().Add(e, bf(2)))
	}, -30, 30, 1.1},
	{"softplus", Softplus, func(x *big.Float) *big.Float { return bigLog1p(bigExp(x)) }, -745, 750, 0.53},
}

// ulps returns the distance between got and exact, in units of the last place of float64 at
// exact.
func ulps(got float64, exact *big.Float) float64 {
	if exact.Sign() == 0 {
		if got == 0 {
			return 0
		}
		return math.Inf(1)
	}
	unit := math.Ldexp(1, max(exact.MantExp(nil)-53, -1074))
	diff := bigNew().Sub(bf(got), exact)
	r, _ := diff.Quo(diff, bf(unit)).Float64()
	return math.Abs(r)
}

// points draws arguments in [lo, hi]: from a uniform distribution, of every magnitude, near 0
// and 1, near small integers and near the multiples to which the functions reduce arguments. It
// also includes lo and hi.
func points(rng *rand.Rand, n int, lo, hi float64) []float64 {
	x := []float64{lo, hi, math.Nextafter(lo, hi), math.Nextafter(hi, lo)}
	add := func(v float64) {
		if v >= lo && v <= hi {
			x = append(x, v)
		}
	}
	for e := -1074; e <= 1023; e += 61 {
		add(math.Ldexp(1, e))
		add(-math.Ldexp(1, e))
	}
	for range n {
		narrow := math.Min(hi, 1000)
		add(lo + rng.Float64()*(narrow-lo))
		add(math.Float64frombits(rng.Uint64()))
		add(math.Ldexp(rng.Float64()*2-1, -rng.IntN(60)))
		add(1 + math.Ldexp(rng.Float64()*2-1, -rng.IntN(54)))
		add((float64(rng.IntN(400)-200) + 0.5) * math.Ln2 / 64)
		add(math.Ldexp(0.5+float64(rng.IntN(192))/256, rng.IntN(60)-30) * (1 + rng.NormFloat64()*1e-15))
	}
	return x
}

func TestElementaryWithinUlps(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, e := range elementary {
		worst, at := 0.0, 0.0
		for _, x := range points(rng, ulpPoints, e.lo, e.hi) {
			exact := e.ref(bf(x))
			limit := e.ulp
			if exact.Sign() == 0 || exact.MantExp(nil) < -1021 {
				limit = 1.1
			}
			got := e.f(x)
			u := ulps(got, exact)
			require.LessOrEqual(t, u, limit, "%s(%x) = %x, %g ulp", e.name, x, got, u)
			if limit == e.ulp && u > worst {
				worst, at = u, x
			}
		}
		t.Logf("%-8s %.4f ulp at %x", e.name, worst, at)
	}
}

func TestPowWithinUlps(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	worst := 0.0
	check := func(x, y float64) {
		exact := bigExp(bigNew().Mul(bf(y), bigLog(bf(x))))
		got := Pow(x, y)
		if math.IsInf(got, 0) {
			require.Greater(t, exact.MantExp(nil), 1024-1)
			return
		}
		limit := 0.52
		if exact.MantExp(nil) < -1021 {
			limit = 1.1
		}
		u := ulps(got, exact)
		require.LessOrEqual(t, u, limit, "pow(%x, %x) = %x", x, y, got)
		if limit < 1 {
			worst = math.Max(worst, u)
		}
	}
	for range ulpPoints {
		x := math.Abs(math.Float64frombits(rng.Uint64()))
		if !(x > 0 && x <= math.MaxFloat64) {
			continue
		}
		logx := math.Log(x)
		check(x, (rng.Float64()*1450-743)/logx)                                    // results of all magnitudes
		check(x, float64(rng.IntN(9)-4)/2)                                         // squares and roots
		check(1+math.Ldexp(rng.Float64()-0.5, -rng.IntN(50)), 1+rng.Float64()*700) // near 1
		y := 1 + math.Ldexp(rng.Float64()+0.5, -rng.IntN(40)-8)
		check(y, (rng.Float64()*1400-700)/math.Log(y)) // large exponents
	}
	t.Logf("pow      %.4f ulp", worst)
	for n := -20; n <= 20; n++ {
		require.Equal(t, math.Ldexp(1, 3*n), Pow(8, float64(n)))
		require.Equal(t, math.Ldexp(1, n), Exp2(float64(n)))
		require.Equal(t, float64(n), Log2(math.Ldexp(1, n)))
	}
	require.Equal(t, 59049.0, Pow(3, 10))
	require.Equal(t, -27.0, Pow(-3, 3))
	require.Equal(t, 3.0, Pow(9, 0.5))
	require.Equal(t, 1e22, Pow(10, 22))
}

func TestSpecialCases(t *testing.T) {
	inf, nan, negZero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		name string
		got  float64
		want float64
	}{
		{"exp(inf)", Exp(inf), inf}, {"exp(-inf)", Exp(-inf), 0}, {"exp(nan)", Exp(nan), nan},
		{"exp(0)", Exp(0), 1}, {"exp(-0)", Exp(negZero), 1}, {"exp(5e-324)", Exp(5e-324), 1},
		{"exp(max)", Exp(expMax), 0x1.fffffffffff2ap1023}, {"exp(max+)", Exp(math.Nextafter(expMax, inf)), inf},
		{"exp(min)", Exp(expMin), 5e-324}, {"exp(min-)", Exp(math.Nextafter(expMin, -inf)), 0},
		{"exp2(1024)", Exp2(1024), inf}, {"exp2(-1074)", Exp2(-1074), 5e-324}, {"exp2(-1075)", Exp2(-1075), 0},
		{"exp2(-1074.9)", Exp2(-1074.9), 5e-324},
		{"exp2(-1076)", Exp2(-1076), 0}, {"exp2(nan)", Exp2(nan), nan}, {"exp2(inf)", Exp2(inf), inf}, {"exp2(-inf)", Exp2(-inf), 0},
		{"expm1(inf)", Expm1(inf), inf}, {"expm1(-inf)", Expm1(-inf), -1}, {"expm1(nan)", Expm1(nan), nan},
		{"expm1(0)", Expm1(0), 0}, {"expm1(-0)", Expm1(negZero), negZero}, {"expm1(5e-324)", Expm1(5e-324), 5e-324},
		{"expm1(710)", Expm1(710), inf}, {"expm1(-50)", Expm1(-50), -1},
		{"log(inf)", Log(inf), inf}, {"log(0)", Log(0), -inf}, {"log(-0)", Log(negZero), -inf}, {"log(-1)", Log(-1), nan},
		{"log(-inf)", Log(-inf), nan}, {"log(nan)", Log(nan), nan}, {"log(1)", Log(1), 0},
		{"log2(inf)", Log2(inf), inf}, {"log2(0)", Log2(0), -inf}, {"log2(-1)", Log2(-1), nan}, {"log2(nan)", Log2(nan), nan}, {"log2(5e-324)", Log2(5e-324), -1074},
		{"log1p(inf)", Log1p(inf), inf}, {"log1p(-inf)", Log1p(-inf), nan}, {"log1p(-1)", Log1p(-1), -inf}, {"log1p(-2)", Log1p(-2), nan},
		{"log1p(nan)", Log1p(nan), nan}, {"log1p(0)", Log1p(0), 0}, {"log1p(-0)", Log1p(negZero), negZero}, {"log1p(5e-324)", Log1p(5e-324), 5e-324},
		{"sigmoid(inf)", Sigmoid(inf), 1}, {"sigmoid(-inf)", Sigmoid(-inf), 0}, {"sigmoid(nan)", Sigmoid(nan), nan}, {"sigmoid(0)", Sigmoid(0), 0.5},
		{"sigmoid(-0)", Sigmoid(negZero), 0.5}, {"sigmoid(1000)", Sigmoid(1000), 1}, {"sigmoid(-1000)", Sigmoid(-1000), 0},
		{"tanh(inf)", Tanh(inf), 1}, {"tanh(-inf)", Tanh(-inf), -1}, {"tanh(nan)", Tanh(nan), nan}, {"tanh(0)", Tanh(0), 0},
		{"tanh(-0)", Tanh(negZero), negZero}, {"tanh(5e-324)", Tanh(5e-324), 5e-324}, {"tanh(max)", Tanh(math.MaxFloat64), 1},
		{"softplus(inf)", Softplus(inf), inf}, {"softplus(-inf)", Softplus(-inf), 0}, {"softplus(nan)", Softplus(nan), nan},
		{"softplus(max)", Softplus(math.MaxFloat64), math.MaxFloat64}, {"softplus(0)", Softplus(0), math.Ln2},
	} {
		requireBits(t, []float64{c.want}, []float64{c.got}, c.name)
	}
}

// TestPowSpecialCases compares Pow with package math for every pair of special arguments.
// math.Pow has the special cases of IEEE 754.
func TestPowSpecialCases(t *testing.T) {
	v := []float64{0, 1, 2, 3, 0.5, 1.5, 2.5, 4, 1e300, 1e-300, 5e-324, math.MaxFloat64, math.Inf(1), math.NaN(), 0x1p53, 0x1p53 - 1, 0x1p52 + 1, 1e18}
	for _, a := range v {
		for _, b := range v {
			for s := range 4 {
				x, y := a, b
				if s&1 != 0 {
					x = -x
				}
				if s&2 != 0 {
					y = -y
				}
				want, got := math.Pow(x, y), Pow(x, y)
				if want == 0 || want != want || math.IsInf(want, 0) || math.Abs(want) == 1 {
					requireBits(t, []float64{want}, []float64{got}, fmt.Sprintf("pow(%g, %g)", x, y))
				} else {
					require.InEpsilon(t, want, got, 1e-14, "pow(%g, %g)", x, y)
				}
			}
		}
	}
}

func TestNaNsAreCanonical(t *testing.T) {
	strange := math.Float64frombits(0xfff0dead0000beef)
	for _, e := range elementary {
		require.Equal(t, math.Float64bits(math.NaN()), math.Float64bits(e.f(strange)), e.name)
	}
	require.Equal(t, math.Float64bits(math.NaN()), math.Float64bits(Pow(strange, 2)))
	require.Equal(t, math.Float64bits(math.NaN()), math.Float64bits(Log(-1)))
	require.Equal(t, math.Float64bits(math.NaN()), math.Float64bits(Log1p(math.Inf(-1))))
}

func TestSlicesEqualScalars(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for name, p := range map[string]struct {
		to func(dst, src []float64)
		f  func(float64) float64
	}{"exp": {ExpTo, Exp}, "log": {LogTo, Log}, "tanh": {TanhTo, Tanh}, "sigmoid": {SigmoidTo, Sigmoid}, "softplus": {SoftplusTo, Softplus}} {
		for n := range 68 {
			src := fill(rng, make([]float64, n+1), 6)[1:]
			want, got := make([]float64, n), make([]float64, n)
			for i, v := range src {
				want[i] = p.f(v)
			}
			p.to(got, src)
			requireBits(t, want, got, name)
			p.to(src, src)
			requireBits(t, want, src, name)
		}
	}
}

// golden compares the bits of arguments and results with the golden file of the function. If
// the file exists, the arguments are read from it, so that only results can differ.
func golden(t *testing.T, name string, f func([]float64) float64, args [][]float64) {
	path := filepath.Join("testdata", name+".bits")
	if *rewrite {
		var b bytes.Buffer
		fmt.Fprintf(&b, "# arguments and result of %s as IEEE 754 bits\n", name)
		for _, a := range args {
			for _, v := range a {
				fmt.Fprintf(&b, "%016x ", math.Float64bits(v))
			}
			fmt.Fprintf(&b, "%016x\n", math.Float64bits(f(a)))
		}
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := 0
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		var bits []uint64
		for _, field := range strings.Fields(s.Text()) {
			var u uint64
			_, err := fmt.Sscanf(field, "%x", &u)
			require.NoError(t, err)
			bits = append(bits, u)
		}
		a := make([]float64, len(bits)-1)
		for i := range a {
			a[i] = math.Float64frombits(bits[i])
		}
		require.Equal(t, fmt.Sprintf("%016x", bits[len(a)]), fmt.Sprintf("%016x", math.Float64bits(f(a))), "%s(%v)", name, a)
		lines++
	}
	require.GreaterOrEqual(t, lines, 40, path)
}

// TestGolden requires the bits in the golden files on every processor and in every build mode.
func TestGolden(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, -5e-324, 0.5, 2, 10, math.Pi}
	for _, e := range elementary {
		var args [][]float64
		for _, v := range special {
			args = append(args, []float64{v})
		}
		for i := range 40 {
			v := e.lo + rng.Float64()*(math.Min(e.hi, 1000)-e.lo)
			if i%2 == 0 {
				v = math.Ldexp(rng.Float64()+0.5, rng.IntN(14)-8)
			}
			args = append(args, []float64{v})
		}
		golden(t, e.name, func(a []float64) float64 { return e.f(a[0]) }, args)
	}
	var args [][]float64
	for range 50 {
		args = append(args, []float64{math.Ldexp(rng.Float64()+0.5, rng.IntN(40)-20), rng.NormFloat64() * 20})
	}
	golden(t, "pow", func(a []float64) float64 { return Pow(a[0], a[1]) }, args)
}

func BenchmarkElementary(b *testing.B) {
	rng := rand.New(rand.NewPCG(15, 16))
	x := make([]float64, 1024)
	for i := range x {
		x[i] = rng.NormFloat64() * 3
	}
	for _, e := range elementary {
		b.Run(e.name, func(b *testing.B) {
			var s float64
			for b.Loop() {
				for _, v := range x {
					if e.lo > 0 {
						v = math.Abs(v)
					}
					s += e.f(v)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/value")
		})
	}
	b.Run("pow", func(b *testing.B) {
		var s float64
		for b.Loop() {
			for _, v := range x {
				s += Pow(math.Abs(v), 2.5)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/value")
	})
}
