package optim

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// update turns gradients into steps, by the formulas of their authors:
//
//	Plain    u = Momentum·u + g; v -= rate·u, Nesterov's v -= rate·(g + Momentum·u)
//	         (Sutskever, Martens, Dahl and Hinton, On the importance of initialization and
//	         momentum in deep learning, ICML 2013, in the form where the rate scales u)
//	Adam     Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015
//	AdaGrad  Duchi, Hazan and Singer, Adaptive subgradient methods, JMLR 12 (2011)
//
// An L1 penalty is no part of the gradient. Instead each step is followed by its proximal map,
// which can make parameters exactly 0 (Duchi and Singer, Efficient online and batch learning
// using forward backward splitting, JMLR 10, 2009).
type update struct {
	*updateScalars
	velocity []float64
	squares  []float64 // running mean or sum of squared gradients
}

// updateScalars are the values that an update keeps besides vectors.
type updateScalars struct {
	Rate           float64 // of the latest step
	Decay1, Decay2 float64 // beta1^t and beta2^t
	Factor         float64 // Decay^epoch
	Epochs         int     // number of epochs in Factor
}

const (
	beta1   = 0.9
	beta2   = 0.999
	epsilon = 1e-8
)

// newUpdate returns an update that continues from what is kept.
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

// referenceBatch is the number of rows of a step for which the default rates are chosen.
const referenceBatch = 128

// rate returns the default of Rate for steps of batch rows. With fewer rows than usual, an
// epoch has more steps in proportion, and the variance of a gradient is larger in proportion.
// If the rate is constant, a rate in proportion to the rows makes up for both. If the rate
// falls with t^-Power, it is in proportion to their power 1−Power. Adam divides by the root of the
// variance, and AdaGrad also by the root of the number of steps.
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

// learningRate returns the rate after t steps, in an epoch that counts from 0.
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

// move changes the parameters v by the step number t, from 0.
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
		// Momentum carries a gradient on for 1/(1−Momentum) steps, so it moves a parameter that
		// much farther in all. The penalty must be weighed against that.
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

// shrink is the proximal map of the L1 penalty of parameter i.
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
