package kernel

import "math"

// Sigmoid returns the logistic function 1/(1+e^-x). The error is below 1.1 ulp. Sigmoid(-x) and
// 1-Sigmoid(x) have different bits in general, because Sigmoid is accurate in both tails.
//
//	Sigmoid(+Inf) = 1; Sigmoid(-Inf) = 0; Sigmoid(NaN) = NaN
func Sigmoid(x float64) float64 {
	switch {
	case x > 40: // 1 - Sigmoid(x) < 2^-57
		return 1
	case x < -40: // the denominator is below 1 + 2^-57
		return Exp(x)
	case x != x:
		return math.NaN()
	}
	s, sl, r, t, k := reduceExp(-math.Abs(x), 0)
	h, l := expPair(s, sl, r, t)
	z := pow2(k)
	h, l = float64(h*z), float64(l*z)
	// As h ≤ 1, h - (den - 1) is the exact error of den.
	den := 1 + h
	denLo := (h - (den - 1)) + l
	// The result is the quotient of the leading parts, corrected for the errors of numerator
	// and denominator. 1/den is q or, approximately, 1-q.
	if x >= 0 {
		q := 1 / den
		return q - float64(float64(q*denLo)*q)
	}
	q := h / den
	return q + float64((l-float64(q*denLo))*(1-q))
}

// Tanh returns the hyperbolic tangent of x. The error is below 1.1 ulp.
//
//	Tanh(±Inf) = ±1; Tanh(±0) = ±0; Tanh(NaN) = NaN
func Tanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x:
		return math.NaN()
	case a > 22:
		return math.Copysign(1, x)
	case a < 0x1p-28: // x³/3 is below 2^-57 of x
		return x
	}
	h, l := expm1Pair(2 * a)
	if a >= 1 {
		return math.Copysign(1-2/(h+2), x)
	}
	// As in Sigmoid, with 2/den = 1-q.
	den, denLo := twoSum(2, h)
	q := h / den
	q += float64((l - float64(q*(denLo+l))) * float64(0.5*(1-q)))
	return math.Copysign(q, x)
}

// Softplus returns log(1+e^x). It does not overflow and is accurate in both tails. The error is
// below 0.53 ulp, below 1.1 ulp where the result is subnormal.
//
//	Softplus(+Inf) = +Inf; Softplus(-Inf) = 0; Softplus(NaN) = NaN
func Softplus(x float64) float64 {
	switch {
	case x != x:
		return math.NaN()
	case x > 45: // e^-x is below 2^-17 ulp of the result
		return x
	case x < -45: // e^x/2 is below 2^-11 ulp of the result, e^x
		return Exp(x)
	}
	a := math.Abs(x)
	s, sl, r, t, k := reduceExp(-a, 0)
	h, l := expPair(s, sl, r, t)
	z := pow2(k)
	h, l = float64(h*z), float64(l*z)
	var lh, ll float64 // log(1+h+l)
	if k < -30 {
		// Three terms of the series of log(1+h+l), because the sum 1+h+l would lose l.
		lh = h + (l - float64(float64(h*h)*(0.5-float64(h*(1.0/3)))))
	} else {
		sum := 1 + h
		lh, ll = logPairSum(sum, (h-(sum-1))+l)
	}
	if x <= 0 {
		return lh
	}
	sum, err := twoSum(a, lh)
	return sum + (err + ll)
}

// Softmax replaces each x[i] by e^x[i] divided by the sum of all e^x[j]. It returns the largest
// x[i] and the sum of all e^(x[i]-largest), so that the logarithm of the sum of all e^x[i] is
// largest+Log(sum). If an element is NaN or the largest is infinite, all elements become NaN.
func Softmax(x []float64) (largest, sum float64) {
	largest = x[0]
	for _, v := range x[1:] {
		largest = max(largest, v)
	}
	for i := range x {
		x[i] -= largest
	}
	ExpTo(x, x)
	for _, e := range x {
		sum += e
	}
	for i := range x {
		x[i] /= sum
	}
	return largest, sum
}
