package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// functionForms has the name of each function and the range of its ordinary arguments.
var functionForms = [functionCount]struct {
	name   string
	lo, hi float64
}{
	expOf: {"exp", -760, 720}, logOf: {"log", 5e-324, math.MaxFloat64},
	sigmoidOf: {"sigmoid", -60, 60}, softplusOf: {"softplus", -60, 60}, tanhOf: {"tanh", -30, 30},
}

// testFunction compares all forms of f for any arguments, in slices that begin at an offset.
func testFunction(t require.TestingT, f function, args []float64, offset int) {
	n := len(args)
	src, dst := make([]float64, offset+n+guard)[offset:offset+n], make([]float64, 7-offset+n+guard)[7-offset:7-offset+n]
	copy(src, args)
	for _, s := range [][]float64{src, dst} {
		for i := range guard {
			s[:n+guard][n+i] = guardValue
		}
	}
	scalar := f.scalar()
	want := make([]float64, n)
	for i, v := range args {
		want[i] = scalar(v)
	}
	at := func(got []float64) {
		for i := range want {
			if math.Float64bits(want[i]) != math.Float64bits(got[i]) {
				require.Equal(t, math.Float64bits(want[i]), math.Float64bits(got[i]), "%s(%x) = %x, not %x", functionForms[f].name, args[i], want[i], got[i])
			}
		}
	}
	for _, form := range append([]dispatch{{}}, assembled...) {
		apply(form, f, dst, src)
		at(dst)
		same(t, want, dst, functionForms[f].name)
		apply(form, f, src, src)
		at(src)
		same(t, want, src, functionForms[f].name)
		copy(src, args)
	}
}

// TestElementaryForms requires the same bits, including those of NaN, from all forms. It tests
// every length and offset, and the arguments that are hardest for the functions.
func TestElementaryForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 62))
	for f := range functionCount {
		lo, hi := functionForms[f].lo, functionForms[f].hi
		narrow := math.Min(hi, 50)
		for n := range 71 {
			for offset := range 8 {
				args := make([]float64, n)
				for i := range args {
					args[i] = math.Max(lo, -3) + rng.Float64()*6
					if rng.IntN(40) == 0 {
						args[i] = difficultValues[rng.IntN(len(difficultValues))]
					}
				}
				testFunction(t, f, args, offset)
			}
		}
		for range formPoints {
			testFunction(t, f, points(rng, 40, lo, hi), 0)
			args := make([]float64, 400)
			for i := range args {
				args[i] = math.Max(lo, -narrow) + rng.Float64()*2*narrow
			}
			testFunction(t, f, args, 1)
			for i := range args {
				args[i] = math.Float64frombits(rng.Uint64())
			}
			testFunction(t, f, args, 2)
			for i := range args {
				args[i] = math.Ldexp(rng.Float64()*2-1, rng.IntN(70)-60)
			}
			testFunction(t, f, args, 3)
		}
	}
}

func FuzzElementaryForms(f *testing.F) {
	f.Add(uint8(0), 1.0, -2.0, 3e-20, 40.0, uint8(1))
	f.Fuzz(func(t *testing.T, name uint8, a, b, c, d float64, offset uint8) {
		testFunction(t, function(name)%functionCount, []float64{a, b, c, d, -a, a * b, c + d, b / c, a}, int(offset%8))
	})
}

func BenchmarkElementaryForms(b *testing.B) {
	const n = 1000
	rng := rand.New(rand.NewPCG(63, 64))
	src, dst := make([]float64, n), make([]float64, n)
	for f := range functionCount {
		for i := range src {
			src[i] = rng.NormFloat64() * 3
			if f == logOf {
				src[i] = math.Abs(src[i])
			}
		}
		for _, form := range forms {
			b.Run(functionForms[f].name+"/"+form.name, func(b *testing.B) {
				for b.Loop() {
					apply(form.k, f, dst, src)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
			})
		}
	}
}
