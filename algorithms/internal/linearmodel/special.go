package linearmodel

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// The functions below return tail probabilities of distributions, from which p values are
// computed. Their relative error is below 1e-10 up to a million degrees of freedom. They use
// only elementary functions that give the same bits on every platform. DLMF is the NIST Digital
// Library of Mathematical Functions.

// stirling are the coefficients B(2k)/(2k(2k−1)) of the asymptotic series of log Γ
// (DLMF 5.11.1).
var stirling = [...]float64{1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156}

// asymptotic is the smallest z for which the asymptotic series is accurate to nearly full
// precision.
const asymptotic = 10

const halfLog2Pi = 0.91893853320467274178

// stirlingRest returns log Γ(z) − ((z−½)·log z − z + ½·log 2π) for z ≥ asymptotic.
func stirlingRest(z float64) float64 {
	inverse := 1 / z
	square := inverse * inverse
	sum := stirling[len(stirling)-1]
	for k := len(stirling) - 2; k >= 0; k-- {
		sum = float64(sum*square) + stirling[k]
	}
	return float64(sum * inverse)
}

// LogGamma returns log Γ(z) for z > 0. If log Γ(z) is near 0, the absolute error is about
// 1e-15. For z < asymptotic, the recurrence Γ(z) = Γ(z+1)/z is used until the argument is so
// large that the series is accurate.
func LogGamma(z float64) float64 {
	if !(z > 0) || math.IsInf(z, 1) {
		return math.Inf(1)
	}
	product := 1.0
	for z < asymptotic {
		product *= z
		z++
	}
	return (float64((z-0.5)*kernel.Log(z)) - z + halfLog2Pi + stirlingRest(z)) - kernel.Log(product)
}

// logRatio returns log Γ(a+b) − log Γ(a). If a is large, it avoids the cancellation of two
// large logarithms.
func logRatio(a, b float64) float64 {
	if a < asymptotic {
		return LogGamma(a+b) - LogGamma(a)
	}
	return float64((a-0.5)*kernel.Log1p(b/a)) + float64(b*(kernel.Log(a+b)-1)) + (stirlingRest(a+b) - stirlingRest(a))
}

// fractionSteps is the largest number of terms of continued fractions and series that are
// computed. The number of terms that are needed is about the square root of the parameters.
const fractionSteps = 100_000

// incompleteBeta returns the regularised incomplete beta function I_x(a, b) (DLMF 8.17). The
// caller passes both x and y = 1−x, each computed without cancellation.
func incompleteBeta(a, b, x, y float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return math.NaN()
	case !(x > 0):
		return 0
	case !(y > 0):
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - betaFraction(b, a, y, x)
	}
	return betaFraction(a, b, x, y)
}

// betaFraction computes incompleteBeta for x below about a/(a+b) by the continued fraction DLMF
// 8.17.22, which it evaluates by the modified method of Lentz.
func betaFraction(a, b, x, y float64) float64 {
	large, small := max(a, b), min(a, b)
	logBeta := LogGamma(small) - logRatio(large, small)
	logX, logY := logOf(x, y), logOf(y, x)
	front := kernel.Exp(float64(a*logX)+float64(b*logY)-logBeta) / a
	const tiny = 1e-300
	c, f := 1.0, 1.0
	d := 1 - (a+b)*x/(a+1)
	if math.Abs(d) < tiny {
		d = tiny
	}
	d = 1 / d
	f = d
	for m := 1; m <= fractionSteps; m++ {
		k := float64(m)
		even := k * (b - k) * x / ((a + float64(2*k) - 1) * (a + float64(2*k)))
		odd := -(a + k) * (a + b + k) * x / ((a + float64(2*k)) * (a + float64(2*k) + 1))
		change := 1.0
		for _, term := range [2]float64{even, odd} {
			d = 1 + float64(term*d)
			if math.Abs(d) < tiny {
				d = tiny
			}
			c = 1 + term/c
			if math.Abs(c) < tiny {
				c = tiny
			}
			d = 1 / d
			change = float64(c * d)
			f *= change
		}
		if math.Abs(change-1) < 1e-15 {
			break
		}
	}
	return min(1, front*f)
}

// logOf returns log x without cancellation. y must be 1−x.
func logOf(x, y float64) float64 {
	if y < 0.5 {
		return kernel.Log1p(-y)
	}
	return kernel.Log(x)
}

// GammaTail returns Q(a, x) = Γ(a, x)/Γ(a) (DLMF 8.2), the probability that a random variable
// of the gamma distribution with shape a and scale 1 exceeds x.
func GammaTail(a, x float64) float64 {
	switch {
	case math.IsNaN(a) || math.IsNaN(x) || !(a > 0):
		return math.NaN()
	case !(x > 0):
		return 1
	case math.IsInf(x, 1):
		return 0
	}
	front := gammaFront(a, x)
	if x < a+1 {
		// The result is 1 − P(a, x), where P is computed by the series DLMF 8.7.1.
		sum, term := 1/a, 1/a
		for k := 1; k <= fractionSteps; k++ {
			term = float64(term * (x / (a + float64(k))))
			sum += term
			if term < sum*1e-17 {
				break
			}
		}
		return max(0, 1-float64(front*sum))
	}
	// Q is computed by the even form of the continued fraction DLMF 8.9.2, evaluated by the
	// method of Lentz.
	const tiny = 1e-300
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	f := d
	for k := 1; k <= fractionSteps; k++ {
		i := float64(k)
		term := -i * (i - a)
		b += 2
		d = float64(term*d) + b
		if math.Abs(d) < tiny {
			d = tiny
		}
		c = b + term/c
		if math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		change := float64(c * d)
		f *= change
		if math.Abs(change-1) < 1e-15 {
			break
		}
	}
	return min(1, float64(front*f))
}

// gammaFront returns x^a·e^−x/Γ(a).
func gammaFront(a, x float64) float64 {
	if a < asymptotic {
		return kernel.Exp(float64(a*kernel.Log(x)) - x - LogGamma(a))
	}
	// With x = a·(1+u), the large terms of the exponent cancel, and −a·(u − log(1+u)) remains.
	u := (x - a) / a
	return kernel.Exp(-float64(a*(u-kernel.Log1p(u)))-stirlingRest(a)) * math.Sqrt(a) * 0.39894228040143267794
}

// NormalTail returns the probability that the absolute value of a random variable of the
// standard normal distribution exceeds |z|.
func NormalTail(z float64) float64 { return GammaTail(0.5, 0.5*float64(z*z)) }

// StudentTail returns the probability that the absolute value of a random variable of Student's
// t distribution exceeds |t|. freedom is the number of degrees of freedom.
func StudentTail(t, freedom float64) float64 {
	if !(freedom > 0) {
		return math.NaN()
	}
	square := float64(t * t)
	if math.IsInf(square, 1) {
		return 0
	}
	sum := freedom + square
	return incompleteBeta(freedom/2, 0.5, freedom/sum, square/sum)
}

// FTail returns the probability that a random variable of the F distribution exceeds f. The
// parameters above and below are the degrees of freedom of the numerator and of the
// denominator.
func FTail(f, above, below float64) float64 {
	if !(above > 0) || !(below > 0) || math.IsNaN(f) {
		return math.NaN()
	}
	if math.IsInf(f, 1) {
		return 0
	}
	up := float64(above * max(f, 0))
	return incompleteBeta(below/2, above/2, below/(below+up), up/(below+up))
}
