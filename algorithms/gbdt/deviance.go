package gbdt

import (
	"fmt"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// counted has the methods that are common to the objectives whose margin is the logarithm of
// the mean.
type counted struct{ number }

func (counted) link() Link                { return Exponential }
func (counted) base(mean float64) float64 { return kernel.Log(mean) }

func (counted) check(r *Rows, i int) error {
	if r.Label[i] < 0 {
		return fmt.Errorf("the label is %v: want a number of 0 or more", r.Label[i])
	}
	return nil
}

// maxMargin bounds the absolute value of a margin before the exponential is taken. The
// exponential of a larger margin would be close to the largest float64.
const maxMargin = 690

// power returns e^m. It first cuts m to ±maxMargin, so that the result does not overflow.
func power(m float64) float64 { return kernel.Exp(max(-maxMargin, min(maxMargin, m))) }

// poisson is the objective e^m − y·m for a label y and a margin m. Its hessian, e^m, is
// multiplied by e^MaxDeltaStep, so that steps stay small where a count is far above its mean.
type poisson struct {
	counted
	inflate float64
}

func (o *poisson) gradients(r *Rows, grad, hess [][]float64) error {
	for i, m := range r.Margin[0] {
		w, mean := r.weight(i), power(m)
		grad[0][i], hess[0][i] = w*(mean-r.Label[i]), float64(w*mean)*o.inflate
	}
	return nil
}

// gamma is the objective y·e^−m + m for a label y and a margin m.
type gamma struct{ counted }

func (gamma) check(r *Rows, i int) error {
	if !(r.Label[i] > 0) {
		return fmt.Errorf("the label is %v: want a number above 0", r.Label[i])
	}
	return nil
}

func (gamma) gradients(r *Rows, grad, hess [][]float64) error {
	for i, m := range r.Margin[0] {
		w, ratio := r.weight(i), float64(r.Label[i]*power(-m))
		grad[0][i], hess[0][i] = w*(1-ratio), w*ratio
	}
	return nil
}

// tweedie is the objective e^((2−p)m)/(2−p) − y·e^((1−p)m)/(1−p) for a label y and a margin m.
// It belongs to a distribution whose variance is in proportion to mean^p.
type tweedie struct {
	counted
	power float64
}

func (o *tweedie) gradients(r *Rows, grad, hess [][]float64) error {
	a, b := 1-o.power, 2-o.power
	for i, m := range r.Margin[0] {
		w := r.weight(i)
		below, above := float64(r.Label[i]*power(float64(a*m))), power(float64(b*m))
		grad[0][i] = w * (above - below)
		hess[0][i] = w * (float64(b*above) - float64(a*below))
	}
	return nil
}
