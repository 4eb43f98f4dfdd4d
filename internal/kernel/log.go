package kernel

import "math"

const (
	// ln2 as the sum of two parts. The first part is a multiple of 2^-42, like the first parts
	// of the entries of logTable, so that k·ln2Hi plus the first part of an entry is exact.
	ln2Hi = 0x1.62e42fefa38p-1
	ln2Lo = 0x1.ef35793c7673p-45

	// 1/ln2 as an unevaluated sum.
	rLn2Hi = 0x1.71547652b82fep+0
	rLn2Lo = 0x1.777d0ffda0d24p-56

	logTableFirst = 90 // the first entry is log(90/128); 90/128 is just below √½
)

// split returns m and k with x = m·2^k and √½ < m ≤ √2 approximately, for a
// positive finite x.
func split(x float64) (m float64, k int) {
	b := math.Float64bits(x)
	if b < 1<<52 {
		b = math.Float64bits(x * 0x1p54)
		k = -54
	}
	const sqrt2 = 0x6a09e667f3bcd // the fraction bits of √2
	k += int(b>>52) - 1023
	b = b&(1<<52-1) | 1023<<52
	if b&(1<<52-1) > sqrt2 {
		b -= 1 << 52
		k++
	}
	return math.Float64frombits(b), k
}

// logPair returns log((m+ml)·2^k) as an unevaluated sum with a relative error below 2^-68, for
// m as returned by split and |ml| ≤ ulp(m)/2, or for m = 1 and any |ml| ≤ 2^-53.
//
// Let F be the multiple of 1/128 nearest to m. Then log m = log F + 2·atanh(z) with z =
// (m-F)/(m+F) and |z| ≤ 0.0028. The quotient is computed to about 78 bits from its leading 26
// bits and the exact remainder.
func logPair(m, ml float64, k int) (h, l float64) {
	i := int(float64(m*128) + 0.5)
	f := float64(float64(i) * (1.0 / 128))
	n := m - f // exact
	num := n + ml
	numLo := (n - num) + ml

	den := m + f
	dh := high(den)
	dl := (m - (dh - f)) + ml
	inv := 1 / den
	z := float64(num * inv)
	zh := high(z)
	zl := float64((((num - float64(zh*dh)) - float64(zh*dl)) + numLo) * inv)

	w := float64(z * z)
	p := 1.0/7 + float64(w*(1.0/9))
	p = 1.0/5 + float64(w*p)
	p = 1.0/3 + float64(w*p)
	tail := float64(float64(2*z) * float64(w*p))

	t := &logTable[i-logTableFirst]
	kf := float64(k)
	a := float64(kf*ln2Hi) + t[0] // exact
	b := float64(kf*ln2Lo) + t[1]
	zh, zl = zh+zh, zl+zl
	h = a + zh // the next line computes its exact error, because a is 0 or |a| ≥ |zh|
	l = ((a - h) + zh) + (zl + (tail + b))
	sum := h + l
	return sum, (h - sum) + l
}

// logSpecial returns the logarithm of an x that is not positive and finite.
func logSpecial(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x > 0:
		return x
	default:
		return math.NaN()
	}
}

// Log returns the natural logarithm of x. The error is below 0.51 ulp.
//
//	Log(+Inf) = +Inf; Log(±0) = -Inf; Log(x < 0) = NaN; Log(NaN) = NaN
func Log(x float64) float64 {
	if !(x > 0 && x <= math.MaxFloat64) {
		return logSpecial(x)
	}
	m, k := split(x)
	h, _ := logPair(m, 0, k)
	return h
}

// Log2 returns the binary logarithm of x. The error is below 0.51 ulp; powers of two give exact
// integers. Log2 has the special cases of [Log].
func Log2(x float64) float64 {
	if !(x > 0 && x <= math.MaxFloat64) {
		return logSpecial(x)
	}
	m, k := split(x)
	h, l := logPair(m, 0, k)
	p, e := twoProduct(h, rLn2Hi)
	return p + (e + (float64(h*rLn2Lo) + float64(l*rLn2Hi)))
}

// Log1p returns log(1+x), accurate near 0. The error is below 0.51 ulp.
//
//	Log1p(+Inf) = +Inf; Log1p(±0) = ±0; Log1p(-1) = -Inf; Log1p(x < -1) = NaN;
//	Log1p(NaN) = NaN
func Log1p(x float64) float64 {
	switch {
	case math.Abs(x) < 0x1p-54:
		return x
	case !(x > -1 && x <= math.MaxFloat64):
		return logSpecial(1 + x)
	}
	s, c := twoSum(1, x)
	h, _ := logPairSum(s, c)
	return h
}

// logPairSum is logPair for the positive number s + c, |c| ≤ ulp(s)/2.
func logPairSum(s, c float64) (h, l float64) {
	m, k := split(s)
	return logPair(m, float64(c*pow2(-k)), k)
}
