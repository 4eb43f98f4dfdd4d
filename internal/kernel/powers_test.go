package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// guarded returns a copy of x that begins at an offset of its array, with guard values after
// it.
func guarded(x []float64, offset int) []float64 {
	s := make([]float64, offset+len(x)+guard)
	copy(s[offset:], x)
	for i := range guard {
		s[offset+len(x)+i] = guardValue
	}
	return s[offset : offset+len(x)]
}

// testPowers compares all forms of powTo with Pow. The slices begin at an offset, and the
// result is written to separate memory and over each of the arguments.
func testPowers(t require.TestingT, x, y []float64, offset int) {
	want := guarded(x, 0)
	for i, v := range x {
		want[i] = Pow(v, y[i])
	}
	for _, form := range append([]dispatch{{}}, assembled...) {
		for place := range 3 {
			a, b := guarded(x, offset), guarded(y, (offset+3)%8)
			dst := [...][]float64{guarded(make([]float64, len(x)), 7-offset), a, b}[place]
			powTo(form, dst, a, b)
			same(t, want, dst, "%+v n=%d offset=%d place=%d", form, len(x), offset, place)
		}
	}
}

func TestPowerForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 74))
	for n := range 36 {
		for offset := range 8 {
			x, y := mixed[float64](rng, n, 0, (n+offset)%3), mixed[float64](rng, n, 0, offset%3)
			for i := range x {
				if rng.IntN(4) > 0 { // arguments that the assembly processes
					x[i] = math.Abs(x[i])
				}
			}
			testPowers(t, x, y, offset)
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
		testPowers(t, x, y, 1)
	}
}

func FuzzPowerForms(f *testing.F) {
	f.Add(1.5, -2.0, 3e-20, 40.0, uint8(1))
	f.Fuzz(func(t *testing.T, a, b, c, d float64, offset uint8) {
		x := []float64{a, b, c, d, math.Abs(a), math.Abs(b), math.Abs(c), math.Abs(d), a * b, c + d, b / c, 1 + a}
		y := make([]float64, len(x))
		for i := range y {
			y[i] = x[(5*i+1)%len(x)]
		}
		testPowers(t, x, y, int(offset%8))
	})
}

// TestPowByTo requires that PowByTo has the results of Pow with the same exponent for each
// element.
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

func BenchmarkPowers(b *testing.B) {
	const n = 1000
	rng := rand.New(rand.NewPCG(77, 78))
	x, y, dst := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], y[i] = math.Abs(rng.NormFloat64()*3), rng.NormFloat64()
	}
	for _, form := range forms {
		b.Run(fmt.Sprintf("pow/%s", form.name), func(b *testing.B) {
			for b.Loop() {
				powTo(form.k, dst, x, y)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
		})
	}
}
