package optim

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// update turns gradients into steps, by the formulas of these papers:
//
//	Plain    u = Momentum·u + g; v -= rate·u, Nesterov's v -= rate·(g + Momentum·u)
//	         (Sutskever, Martens, Dahl and Hinton, On the importance of initialization and
//	         momentum in deep learning, ICML 2013, in the variant where the rate scales u)
//	Adam     Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015
//	AdaGrad  Duchi, Hazan and Singer, Adaptive subgradient methods, JMLR 12 (2011)
//
// An L1 penalty is not part of the gradient. Instead each step is followed by the penalty's
// proximal map, which can make parameters exactly 0 (Duchi and Singer, Efficient online and
// batch learning using forward backward splitting, JMLR 10, 2009).
type update struct {
	*updateScalars
	velocity []float64
	squares  []float64 // running mean or sum of squared gradients
}

// updateScalars are the values of an update, other than vectors, that are kept between
// supersteps.
type updateScalars struct {
	Rate           float64 // rate of the latest step
	Decay1, Decay2 float64 // beta1^t and beta2^t
	Factor         float64 // Decay^epoch
	Epochs         int     // number of epochs in Factor
}

const (
	beta1   = 0.9
	beta2   = 0.999
	epsilon = 1e-8
)

// newUpdate returns an update of n parameters that continues from the kept scalars p and the
// kept vectors.
func newUpdate(ctx *comqueue.ComContext, set *Settings, n int, p *updateScalars) update {
	u := update{updateScalars: p}
	s := &set.Stochastic
	if s.Update == Adam || s.Momentum > 0 {
		u.velocity = recall(ctx, velocities, n)
	}
	if s.Update != Plain {
		u.squares = recall(ctx, squareSums, n)
	}
	return u
}

// referenceBatch is the number of rows in a step for which the default rates are chosen.
const referenceBatch = 128

// rate returns the default of Rate for steps of batch rows. If batch is halved, an epoch has
// twice as many steps, and the variance of a gradient doubles. If the rate is constant, making
// it proportional to batch compensates for both. If the rate falls with t^-Power, the first
// rate is proportional to batch^(1−Power). Adam divides steps by the root of the variance, and
// AdaGrad also by the root of the number of steps, so their exponents of batch are smaller by ½
// and by 1, respectively.
func (s Stochastic) rate(batch int) float64 {
	rates := [...][4]float64{
		Plain:   {InverseScaling: 1, Constant: 0.1, Exponential: 0.3, Optimal: 0.1},
		Adam:    {InverseScaling: 0.1, Constant: 0.003, Exponential: 0.01, Optimal: 0.003},
		AdaGrad: {InverseScaling: 1, Constant: 0.1, Exponential: 0.3, Optimal: 0.1},
	}
	rate := rates[s.Update][s.Schedule] * (1 - s.Momentum)
	power := [...]float64{Plain: 1, Adam: 0.5, AdaGrad: 0}[s.Update]
	if s.Schedule == InverseScaling {
		power -= s.Power
	}
	if batch >= referenceBatch || power <= 0 {
		return rate
	}
	return rate * kernel.Pow(float64(batch)/referenceBatch, power)
}

// learningRate returns the rate after t steps, in the given epoch, which counts from 0.
func (u *update) learningRate(set *Settings, t, epoch int) float64 {
	s := &set.Stochastic
	switch s.Schedule {
	case InverseScaling:
		return s.Rate / kernel.Pow(1+float64(t), s.Power)
	case Exponential:
		for ; u.Epochs < epoch; u.Epochs++ {
			u.Factor *= s.Decay
		}
		return s.Rate * u.Factor
	case Optimal:
		return 1 / (1/s.Rate + float64(set.L2*float64(t)))
	}
	return s.Rate
}

// move changes the parameters v by step t, counted from 0.
func (u *update) move(set *Settings, t, epoch int, g, v []float64, p *penalty) {
	u.Rate = u.learningRate(set, t, epoch)
	s := &set.Stochastic
	switch s.Update {
	case Adam:
		u.Decay1, u.Decay2 = float64(u.Decay1*beta1), float64(u.Decay2*beta2)
		first, second := 1-u.Decay1, 1-u.Decay2
		for i, d := range g {
			u.velocity[i] = float64(beta1*u.velocity[i]) + float64((1-beta1)*d)
			u.squares[i] = float64(beta2*u.squares[i]) + float64((1-beta2)*float64(d*d))
			rate := u.Rate / (math.Sqrt(u.squares[i]/second) + epsilon)
			v[i] = p.shrink(i, v[i]-float64(rate*(u.velocity[i]/first)), rate)
		}
	case AdaGrad:
		for i, d := range g {
			u.squares[i] += float64(d * d)
			rate := u.Rate / (math.Sqrt(u.squares[i]) + epsilon)
			v[i] = p.shrink(i, v[i]-float64(rate*d), rate)
		}
	default:
		// With momentum, a gradient moves a parameter 1/(1−Momentum) times as far in total as
		// without momentum. The penalty is therefore weighed with the rate multiplied by that
		// factor.
		pull := u.Rate / (1 - s.Momentum)
		for i, d := range g {
			if u.velocity != nil {
				u.velocity[i] = float64(s.Momentum*u.velocity[i]) + d
				if s.Nesterov {
					d += float64(s.Momentum * u.velocity[i])
				} else {
					d = u.velocity[i]
				}
			}
			v[i] = p.shrink(i, v[i]-float64(u.Rate*d), pull)
		}
	}
}

// shrink returns parameter i after the proximal map of its L1 penalty.
func (p *penalty) shrink(i int, v, rate float64) float64 {
	if p.l1 == 0 {
		return v
	}
	by := float64(rate * (p.l1 * math.Abs(p.factors[i])))
	switch {
	case v > by:
		return v - by
	case v < -by:
		return v + by
	case by == 0:
		return v
	}
	return 0
}
