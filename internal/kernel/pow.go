package kernel

import "math"

// Pow returns x to the power of y. The error is below 0.52 ulp, below 1.1 ulp where the result
// is subnormal. Pow has the special cases of pow in IEEE 754, which apply in this order:
//
//	Pow(x, ±0) = 1 and Pow(1, y) = 1 for any x and y, NaN included
//	Pow(x, y) = NaN if x or y is NaN
//	Pow(-1, ±Inf) = 1
//	Pow(x, ±Inf) = +Inf if |x| > 1 and y > 0, or |x| < 1 and y < 0; otherwise 0
//	Pow(±0, y) and Pow(±Inf, y) = ±0 or ±Inf; negative if x is negative and y is an odd integer
//	Pow(x, y) = NaN for finite x < 0 and finite y that is not an integer
func Pow(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case x != x || y != y:
		return math.NaN()
	case math.IsInf(y, 0):
		return powInf(x, y)
	}
	a := math.Abs(x)
	negative := false
	if math.Signbit(x) {
		integer, odd := parity(y)
		if !integer && a != 0 && a <= math.MaxFloat64 {
			return math.NaN()
		}
		negative = odd
	}
	var r float64
	switch {
	case a == 0 && y > 0, a > math.MaxFloat64 && y < 0:
		r = 0
	case a == 0, a > math.MaxFloat64:
		r = math.Inf(1)
	default:
		r = powPositive(a, y)
	}
	if negative {
		return -r
	}
	return r
}

// powInf is Pow for an infinite y.
func powInf(x, y float64) float64 {
	switch a := math.Abs(x); {
	case a == 1:
		return 1
	case (a > 1) == (y > 0):
		return math.Inf(1)
	default:
		return 0
	}
}

// parity reports whether a finite y is an integer, and whether it is odd.
func parity(y float64) (integer, odd bool) {
	a := math.Abs(y)
	if a >= 0x1p53 {
		return true, false
	}
	n := int64(a)
	return float64(n) == a, float64(n) == a && n&1 == 1
}

// powPositive returns e^(y·log a) for positive finite a and finite y. The logarithm and the
// product have relative errors of 2^-68, so that even for the largest exponents the relative
// error of the result before rounding is about 2^-58.
func powPositive(a, y float64) float64 {
	m, n := split(a)
	h, l := logPair(m, 0, n)
	switch p := float64(y * h); {
	case p > 800:
		return math.Inf(1)
	case p < -800:
		return 0
	}
	p, e := twoProduct(y, h)
	e += float64(y * l)
	x := p + e
	e = (p - x) + e
	if x > expMax+1 {
		return math.Inf(1)
	}
	if x < expMin-1 {
		return 0
	}
	s, sl, r, t, k := reduceExp(x, e)
	v, _ := expPair(s, sl, r, t)
	return scale(v, k)
}
