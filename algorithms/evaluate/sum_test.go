package evaluate

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// trueSum returns the sum computed in exact arithmetic and rounded once.
func trueSum(values []float64) float64 {
	total := new(big.Float).SetPrec(4000)
	for _, v := range values {
		total.Add(total, new(big.Float).SetPrec(4000).SetFloat64(v))
	}
	f, _ := total.Float64()
	return f
}

func anyNumber() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Float64Range(-1, 1),
		rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64),
		rapid.SampledFrom([]float64{0, 1, -1, 5e-324, -5e-324, 0x1p-1022, math.MaxFloat64, -math.MaxFloat64, 0x1p53, 1e16, 1e-16}),
		rapid.Map(rapid.Int64Range(-1000, 1000), func(i int64) float64 { return float64(i) }),
	)
}

func TestSumIsTheTrueSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(anyNumber(), 0, 40).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		var left, right sum
		for _, v := range values[:cut] {
			left.add(v)
		}
		for _, v := range values[cut:] {
			right.add(v)
		}
		left.merge(&right)
		require.Equal(t, math.Float64bits(trueSum(values)+0), math.Float64bits(left.value()))
	})
}

// TestSumKeepsWhatIsSmall requires that small values are not lost while large values are added
// and cancel.
func TestSumKeepsWhatIsSmall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var values []float64
		for range rapid.IntRange(1, 12).Draw(t, "n") {
			v := math.Ldexp(1+rapid.Float64Range(0, 1).Draw(t, "mantissa"), rapid.IntRange(-1000, 1000).Draw(t, "exponent"))
			values = append(values, v)
			if rapid.IntRange(0, 4).Draw(t, "keep") > 0 {
				values = append(values, -v)
			}
		}
		values = rapid.Permutation(values).Draw(t, "order")
		var s sum
		for _, v := range values {
			s.add(v)
		}
		require.Equal(t, trueSum(values)+0, s.value())
		require.Equal(t, s.value(), trueSum(s.components(nil))+0)
	})
	var s sum
	for _, v := range []float64{1e300, 1, 1e-300, -1e300, -1} {
		s.add(v)
	}
	require.Equal(t, 1e-300, s.value())
}

// TestSumMergesFullDigits requires that merge propagates the carries of full digits before it
// adds other digits.
func TestSumMergesFullDigits(t *testing.T) {
	full := func() *sum {
		s := &sum{Big: make([]int64, bigDigits), Adds: maxAdds}
		s.Big[40] = 1<<62 - 1
		return s
	}
	a, b := full(), full()
	want := 2 * a.value()
	a = full()
	a.merge(b)
	// Then maxAdds further additions cannot overflow the digit.
	require.Less(t, a.Big[40], int64(1)<<33)
	require.Equal(t, want, a.value())
}

func TestSumOfProductsIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "n")
		var s sum
		total := new(big.Float).SetPrec(4000)
		for range n {
			x := rapid.Float64Range(-1e9, 1e9).Draw(t, "x")
			y := rapid.Float64Range(-1e9, 1e9).Draw(t, "y")
			if math.Abs(x) < 1e-100 || math.Abs(y) < 1e-100 {
				x, y = 1, 1
			}
			s.addProduct(x, y)
			p := new(big.Float).SetPrec(4000).SetFloat64(x)
			total.Add(total, p.Mul(p, new(big.Float).SetFloat64(y)))
		}
		want, _ := total.Float64()
		require.Equal(t, want, s.value())
	})
}

func TestSumCarriesOn(t *testing.T) {
	// Many large and small values are added in turn, so the lowest and the highest digit
	// change. Setting Adds to maxAdds forces the propagation of carries.
	var s sum
	var values []float64
	for i := range 2000 {
		for _, v := range []float64{math.MaxFloat64, 5e-324, -1e300, 1.5} {
			values = append(values, v)
			s.add(v)
		}
		if i%100 == 0 && s.Big != nil {
			s.Adds = maxAdds
		}
	}
	for range 2000 {
		s.add(-math.MaxFloat64)
		values = append(values, -math.MaxFloat64)
	}
	require.Equal(t, trueSum(values), s.value())
}

func TestSumOfWhatIsNoNumber(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		add  []float64
		want float64
	}{{[]float64{1, inf, 2}, inf}, {[]float64{-inf, 1}, -inf}, {[]float64{inf, -inf}, math.NaN()}, {[]float64{math.NaN(), 1}, math.NaN()}} {
		var s, o sum
		s.add(c.add[0])
		for _, v := range c.add[1:] {
			o.add(v)
		}
		s.merge(&o)
		require.Equal(t, math.IsNaN(c.want), math.IsNaN(s.value()))
		if !math.IsNaN(c.want) {
			require.Equal(t, c.want, s.value())
		}
		require.Equal(t, false, s.finite())
	}
}

func TestSpreadDoesNotCancel(t *testing.T) {
	var w, x, xx sum
	for _, v := range []float64{1e9 + 1, 1e9 + 2, 1e9 + 3} {
		w.add(1)
		x.add(v)
		xx.addProduct(v, v)
	}
	require.Equal(t, 2.0, spread(&w, &x, &xx))
	require.Equal(t, 0.0, spread(new(sum), new(sum), new(sum)))
	x.add(math.Inf(1))
	require.True(t, math.IsNaN(spread(&w, &x, &xx)))
}

func TestSumAllocatesNothingOnOrdinaryData(t *testing.T) {
	var s sum
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for i := range 100 {
			s.add(float64(i) * 0.37)
		}
	}))
}
