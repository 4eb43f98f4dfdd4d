package gbdt

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// aft is the objective AFT: −log of the likelihood of a time that is either known or only known
// to lie in an interval. The logarithm of the time equals the margin plus scale times an error
// that is drawn from distribution (Barnwal, Cho and Hocking, "Survival regression with
// accelerated failure time model in XGBoost", Journal of Computational and Graphical Statistics
// 31, 2022). Gradients and hessians are bounded in absolute value by maxAFT, so that no single
// outlier outweighs all other rows.
type aft struct {
	distribution Distribution
	scale        float64
}

const maxAFT = 15

// leastShare is the least probability of an interval. An interval of a smaller probability is
// treated as unbounded at its end farther from the margin.
const leastShare = 1e-10

func (*aft) link() Link                { return Exponential }
func (*aft) base(mean float64) float64 { return mean }

// target returns the logarithm of the time of row i. For an interval it returns the mean of the
// logarithms of both ends, or, if only one end is known, the logarithm of this end.
func (o *aft) target(r *Rows, i, _ int) float64 {
	lower, upper := interval(r, i)
	switch {
	case lower > 0 && kernel.Finite(upper):
		return (kernel.Log(lower) + kernel.Log(upper)) / 2
	case lower > 0:
		return kernel.Log(lower)
	case kernel.Finite(upper):
		return kernel.Log(upper)
	}
	return 0
}

// interval returns the lower and the upper end of the label of row i. Both are the label itself
// if labels are not intervals.
func interval(r *Rows, i int) (lower, upper float64) {
	if r.Upper == nil {
		return r.Label[i], r.Label[i]
	}
	return r.Label[i], r.Upper[i]
}

func (*aft) check(r *Rows, i int) error {
	lower, upper := interval(r, i)
	switch {
	case r.Upper == nil && !(lower > 0):
		return fmt.Errorf("the label is %v: want a time above 0", lower)
	case lower > upper || !(upper > 0) || math.IsInf(lower, 1):
		return fmt.Errorf("the label is from %v to %v: want an interval of times above 0; its lower end may be 0 and its upper end +Inf", lower, upper)
	}
	return nil
}

func (o *aft) gradients(r *Rows, grad, hess [][]float64) error {
	for i, m := range r.Margin[0] {
		lower, upper := interval(r, i)
		_, d1, d2 := o.term(m, lower, upper)
		w := r.weight(i)
		grad[0][i] = w * max(-maxAFT, min(maxAFT, -(d1/o.scale)))
		hess[0][i] = w * max(minHessian, min(maxAFT, d2/float64(o.scale*o.scale)))
	}
	return nil
}

// term returns nll, −log of the likelihood of a row, and d1 and d2, the first and second
// derivatives of nll with respect to the standardised logarithm of the time.
func (o *aft) term(margin, lower, upper float64) (nll, d1, d2 float64) {
	z := func(t float64) float64 { return (kernel.Log(t) - margin) / o.scale }
	switch {
	case lower == upper:
		nll, d1, d2 = o.distribution.density(z(lower))
		return nll + kernel.Log(o.scale) + kernel.Log(lower), d1, d2
	case !(lower > 0) && math.IsInf(upper, 1):
		return 0, 0, 0
	case math.IsInf(upper, 1):
		return o.distribution.above(z(lower))
	case !(lower > 0):
		return o.distribution.below(z(upper))
	}
	l, u := z(lower), z(upper)
	share := o.distribution.between(l, u)
	if share < leastShare {
		if l > 0 {
			return o.distribution.above(l)
		}
		return o.distribution.below(u)
	}
	fl, gl := o.distribution.slope(l)
	fu, gu := o.distribution.slope(u)
	// d1 and d2 are the derivatives with respect to a common shift of both ends.
	d1 = -((fu - fl) / share)
	d2 = float64(d1*d1) - (gu-gl)/share
	return -kernel.Log(share), d1, d2
}

// halfLog2Pi is ½·log 2π.
const halfLog2Pi = 0.91893853320467274178032973640561764

// tail bounds the exponents. For larger ones the gradients have reached their bounds.
const tail = 50

// density returns −log f(z) for the density f, and its first and second derivatives.
func (d Distribution) density(z float64) (nll, d1, d2 float64) {
	switch d {
	case LogisticTime:
		s := kernel.Sigmoid(z)
		return kernel.Softplus(z) + kernel.Softplus(-z), s - kernel.Sigmoid(-z), 2 * s * (1 - s)
	case ExtremeTime:
		e := kernel.Exp(min(z, tail))
		return e - z, e - 1, e
	}
	return float64(float64(z*z)/2) + halfLog2Pi, z, 1
}

// above returns −log(1−F(z)) for the distribution function F, and its first and second
// derivatives.
func (d Distribution) above(z float64) (nll, d1, d2 float64) {
	switch d {
	case LogisticTime:
		s := kernel.Sigmoid(z)
		return kernel.Softplus(z), s, s * (1 - s)
	case ExtremeTime:
		e := kernel.Exp(min(z, tail))
		return e, e, e
	}
	share, hazard := normalAbove(z)
	if share > 0 {
		nll = -kernel.Log(share)
	} else {
		nll = float64(float64(z*z)/2) + halfLog2Pi + kernel.Log(hazard)
	}
	return nll, hazard, hazard * (hazard - z)
}

// below returns −log F(z), and its first and second derivatives.
func (d Distribution) below(z float64) (nll, d1, d2 float64) {
	switch d {
	case LogisticTime:
		nll, d1, d2 = d.above(-z)
		return nll, -d1, d2
	case ExtremeTime:
		e := kernel.Exp(min(z, tail))
		rate := e / kernel.Expm1(e)
		if e == 0 {
			rate = 1
		}
		nll = -kernel.Log(-kernel.Expm1(-e))
		if z < -tail {
			nll = -z
		}
		return nll, -rate, rate * (rate + e - 1)
	}
	nll, d1, d2 = d.above(-z)
	return nll, -d1, d2
}

// between returns F(u) − F(l), the probability of the interval from l to u.
func (d Distribution) between(l, u float64) float64 {
	switch d {
	case LogisticTime:
		if l > 0 {
			l, u = -u, -l
		}
		return kernel.Sigmoid(u) - kernel.Sigmoid(l)
	case ExtremeTime:
		el, eu := kernel.Exp(min(l, tail)), kernel.Exp(min(u, tail))
		return -float64(kernel.Exp(-el) * kernel.Expm1(el-eu))
	}
	if l < 0 {
		l, u = -u, -l
	}
	a, _ := normalAbove(l)
	b, _ := normalAbove(u)
	return a - b
}

// slope returns the density f(z) and its derivative f'(z).
func (d Distribution) slope(z float64) (f, slope float64) {
	switch d {
	case LogisticTime:
		s := kernel.Sigmoid(z)
		f = s * (1 - s)
		return f, f * (1 - float64(2*s))
	case ExtremeTime:
		e := kernel.Exp(min(z, tail))
		f = e * kernel.Exp(-e)
		return f, f * (1 - e)
	}
	f = kernel.Exp(-float64(float64(z*z)/2) - halfLog2Pi)
	return f, -(z * f)
}

// normalAbove returns 1−Φ(z) and φ(z)/(1−Φ(z)). For z up to 2.5 it sums the power series about
// 0. For larger z, where the terms of the series cancel, it uses Laplace's continued fraction.
func normalAbove(z float64) (share, hazard float64) {
	density := kernel.Exp(-float64(float64(z*z)/2) - halfLog2Pi)
	if z > 2.5 {
		v := z
		for k := 120; k >= 1; k-- {
			v = z + float64(k)/v
		}
		return density / v, v
	}
	if z < -9 {
		return 1, density
	}
	term, sum := z, z
	for k := 3.0; ; k += 2 {
		term = float64(term*z) * z / k
		next := sum + term
		if next == sum {
			break
		}
		sum = next
	}
	share = 0.5 - float64(density*sum)
	return share, density / share
}
