package kernel

import "math"

// The elementary functions of this package use only additions, multiplications, divisions and
// bit operations, each rounded to float64, so they give the same bits on every processor and in
// every build mode. Package math does not guarantee that: it has assembly for some
// architectures, and allows fused products and sums on others.
//
// The functions represent intermediate results as an unevaluated sum h + l of two floats until
// the last addition. This costs a few operations and brings the error close to half an ulp, the
// error of correct rounding. A NaN result is always math.NaN(). The argument reductions are the
// table-driven reductions of Tang (ACM TOMS 15, 1989, for exp; 16, 1990, for log; 18, 1992, for
// expm1). The tables are so fine that Taylor polynomials are as accurate as minimax
// polynomials.

const (
	// ln2/64 as the sum of two parts. The first part has 36 bits, so that its product with any
	// integer of at most 17 bits is exact.
	ln2by64Hi = 0x1.62e42fefap-7
	ln2by64Lo = 0x1.cf79abc9e3b398p-46
	rLn2by64  = 0x1.71547652b82fep+6 // 64/ln2

	// Adding and then subtracting roundShift rounds to the nearest integer, ties to even.
	roundShift = 0x1.8p52

	expMax = 0x1.62e42fefa39efp+9  // exp overflows for larger arguments
	expMin = -0x1.74910d52d3051p+9 // exp rounds to 0 for smaller arguments
)

// reduceExp returns factors of e^(x+xl), for |x| ≤ 800 and |xl| ≤ ulp(x). e^(x+xl) is (s +
// sl)·(1 + r + t)·2^k, where s + sl is 2^(j/64) to about 107 bits for an integer j, |r| ≤
// 0.0055 and |t| ≤ 2e-5.
func reduceExp(x, xl float64) (s, sl, r, t float64, k int) {
	n := (float64(x*rLn2by64) + roundShift) - roundShift
	rh := x - float64(n*ln2by64Hi)
	rl := xl - float64(n*ln2by64Lo)
	r = rh + rl
	i := int(n)
	e := &expTable[i&63]
	return e[0], e[1], r, ((rh - r) + rl) + expTail(r), i >> 6
}

// expTail returns e^r - 1 - r for |r| ≤ 0.0055; the terms after r^6 are below 2^-64.
func expTail(r float64) float64 {
	w := float64(r * r)
	p := (1.0/24 + float64(r*(1.0/120))) + float64(w*(1.0/720))
	p = (0.5 + float64(r*(1.0/6))) + float64(w*p)
	return float64(w * p)
}

// expPair returns (s + sl)·(1 + r + t) for the results of reduceExp as an unevaluated sum h +
// l; h is between 0.99 and 2.
func expPair(s, sl, r, t float64) (h, l float64) {
	p := sl + float64(s*(r+t))
	h = s + p
	return h, (s - h) + p
}

// pow2 returns 2^k for -1074 ≤ k ≤ 1023.
func pow2(k int) float64 {
	if k < -1022 {
		return math.Float64frombits(1 << uint(k+1074))
	}
	return math.Float64frombits(uint64(k+1023) << 52)
}

// scale returns y·2^k for y near 1 and -1100 ≤ k ≤ 1024. A subnormal result is rounded.
func scale(y float64, k int) float64 {
	switch {
	case k > 1023:
		return float64(float64(y*0x1p1023) * 2)
	case k < -1022:
		return float64(float64(y*pow2(k+128)) * 0x1p-128)
	default:
		return float64(y * pow2(k))
	}
}

// Exp returns e^x. The error is below 0.52 ulp, below 1.1 ulp where the result
// is subnormal.
//
//	Exp(±Inf) = +Inf, 0; Exp(NaN) = NaN
func Exp(x float64) float64 {
	switch {
	case x != x:
		return math.NaN()
	case x > expMax:
		return math.Inf(1)
	case x < expMin:
		return 0
	}
	s, sl, r, t, k := reduceExp(x, 0)
	h, _ := expPair(s, sl, r, t)
	return scale(h, k)
}

// Exp2 returns 2^x. The error is below 0.53 ulp, below 1.1 ulp where the result
// is subnormal; integers give exact powers.
//
//	Exp2(±Inf) = +Inf, 0; Exp2(NaN) = NaN
func Exp2(x float64) float64 {
	switch {
	case x != x:
		return math.NaN()
	case x >= 1024:
		return math.Inf(1)
	case x < -1075:
		return 0
	}
	n := (float64(x*64) + roundShift) - roundShift
	f := x - float64(n*(1.0/64)) // exact
	r := float64(f * math.Ln2)
	i := int(n)
	t := &expTable[i&63]
	h, _ := expPair(t[0], t[1], r, expTail(r))
	return scale(h, i>>6)
}

// Expm1 returns e^x - 1, accurate near 0. The error is below 0.55 ulp.
//
//	Expm1(±Inf) = +Inf, -1; Expm1(±0) = ±0; Expm1(NaN) = NaN
func Expm1(x float64) float64 {
	switch {
	case x != x:
		return math.NaN()
	case x > 40: // the 1 is below 0.04 ulp
		return Exp(x)
	case x < -40:
		return -1
	case math.Abs(x) < 0x1p-54:
		return x
	}
	h, _ := expm1Pair(x)
	return h
}

// expm1Pair returns e^x - 1 as an unevaluated sum h + l, for 2^-54 ≤ |x| ≤ 44. With a = s·2^k -
// 1 and p = r + t, the result is a + (1+a)·p = a + p + a·p. Only terms that are much smaller
// than the result are rounded.
func expm1Pair(x float64) (h, l float64) {
	s, sl, r, t, k := reduceExp(x, 0)
	z := pow2(k)
	s, sl = float64(s*z), float64(sl*z)
	a, al := twoSum(s, -1)
	h = a + r
	p := r + t
	l = ((a - h) + r) + ((t + float64(a*p)) + ((sl + float64(sl*p)) + al))
	sum := h + l
	return sum, (h - sum) + l
}

// twoSum returns the rounded sum of a and b and its exact error (Knuth).
func twoSum(a, b float64) (sum, err float64) {
	sum = a + b
	v := sum - a
	return sum, (a - (sum - v)) + (b - v)
}

// high returns x truncated to its leading 26 bits, so that the product of two such numbers is
// exact.
func high(x float64) float64 {
	return math.Float64frombits(math.Float64bits(x) &^ (1<<27 - 1))
}

// twoProduct returns the rounded product of a and b and its error, exact up to
// 2^-105 of the product (Dekker), for products far from overflow and underflow.
func twoProduct(a, b float64) (prod, err float64) {
	prod = float64(a * b)
	ah, bh := high(a), high(b)
	al, bl := a-ah, b-bh
	err = ((float64(ah*bh) - prod) + float64(ah*bl)) + float64(al*bh)
	return prod, err + float64(al*bl)
}
