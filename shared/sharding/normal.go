package sharding

import "math"

// The functions of this file use only + - * / and math.Sqrt, which IEEE 754 rounds correctly.
// They convert every product to float64 before adding it, which forbids the compiler to fuse
// the two operations. So the results have the same bits on every processor.

// normalQuantile returns the u-quantile of the normal distribution with mean 0 and variance 1,
// for 0 < u < 1, to about 16 digits. It uses the rational approximations PPND16 of Wichura,
// "Algorithm AS 241: The Percentage Points of the Normal Distribution" (Applied Statistics 37,
// 1988). normalQuantile(1−u) has exactly the bits of −normalQuantile(u) where 1−u is exact.
func normalQuantile(u float64) float64 {
	q := u - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return q * (horner(r, &centreNum) / horner(r, &centreDen))
	}
	tail := min(u, 1-u)
	r := math.Sqrt(-logarithm(tail))
	var z float64
	if r <= 5 {
		r -= 1.6
		z = horner(r, &middleNum) / horner(r, &middleDen)
	} else {
		r -= 5
		z = horner(r, &farNum) / horner(r, &farDen)
	}
	if q < 0 {
		return -z
	}
	return z
}

// Coefficients of PPND16, lowest power first: numerator and denominator for the centre (|u −
// 1/2| ≤ 0.425), for the middle (tails with probabilities down to e^-25) and for the far tails.
var (
	centreNum = [8]float64{
		3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
		4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
	}
	centreDen = [8]float64{
		1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
		2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3,
	}
	middleNum = [8]float64{
		1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
		1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
	}
	middleDen = [8]float64{
		1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
		1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9,
	}
	farNum = [8]float64{
		6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
		2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7,
	}
	farDen = [8]float64{
		1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
		7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15,
	}
)

// horner evaluates the polynomial with coefficients c, lowest power first.
func horner(x float64, c *[8]float64) float64 {
	y := c[7]
	for i := 6; i >= 0; i-- {
		y = float64(y*x) + c[i]
	}
	return y
}

// logarithm returns the natural logarithm of a positive normal number, to within about two
// units in the last place. It splits x into m·2^e with m in [√½, √2) and sums twelve terms of
// the power series of log m = 2·artanh((m−1)/(m+1)). The omitted terms are below 2^-56.
func logarithm(x float64) float64 {
	const ln2Hi, ln2Lo = 0x1.62e42fee00000p-1, 0x1.a39ef35793c76p-33
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	s := (m - 1) / (m + 1)
	s2 := float64(s * s)
	sum := 0.0
	for k := 23; k >= 3; k -= 2 {
		sum = float64(s2 * (sum + 1/float64(k)))
	}
	// ln2Hi has enough trailing zeros for its product with e to be exact.
	return float64(float64(e)*ln2Hi) + (float64(2*s) + (float64(float64(2*s)*sum) + float64(float64(e)*ln2Lo)))
}
