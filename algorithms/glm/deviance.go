package glm

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// deviance is an objective.Loss of the margin: half the unit deviance of a family. The variance
// of the family is mean^power or, for Binomial, mean·(1−mean). At computes the expected second
// derivatives, which are the Fisher information. With these, Newton's method is iteratively
// reweighted least squares (Nelder and Wedderburn, Generalized linear models, Journal of the
// Royal Statistical Society A 135, 1972; McCullagh and Nelder, Generalized Linear Models). The
// exception is the method logarithmic, which uses the actual second derivatives for some steps.
type deviance struct {
	family Family
	link   Link
	power  float64
	// shift is added to margins, so that parameters of 0 give the mean of all labels for every
	// row.
	shift float64
	// withStatistics adds two constants that do not change the loss. Their second derivatives
	// are the row's terms of Pearson's statistic, and of the log-likelihood as far as it is not
	// part of the deviance. The sums of both over the rows are then part of the last matrix and
	// need no separate read.
	withStatistics bool
}

// Indices of the two statistics among the constants.
const (
	pearsonTally = iota
	saturatedTally
	statistics
)

// powers has the power of each family: the variance is the mean to this power.
var powers = [...]float64{Gaussian: 0, Poisson: 1, Gamma: 2}

// devianceOf returns the loss for valid parameters.
func (p Params) devianceOf(withStatistics bool) deviance {
	l := deviance{family: p.Family, link: p.link(), withStatistics: withStatistics}
	switch p.Family {
	case Tweedie:
		l.power = p.power()
	case Binomial:
	default:
		l.power = powers[p.Family]
	}
	return l
}

// String implements objective.Loss.
func (l deviance) String() string { return l.family.String() }

// Label implements objective.Loss.
func (deviance) Label() rows.LabelKind { return rows.NumberLabel }

// Shape implements objective.Loss.
func (l deviance) Shape(f *rows.Facts) (objective.Shape, error) {
	s := objective.Shape{Margins: 1, Unit: l.unit(f)}
	if l.withStatistics {
		s.Constants = statistics
	}
	return s, nil
}

// unit returns the size of a large derivative of the loss by the margin. This is a typical
// difference between label and mean, divided by mean^power, times the derivative of the mean by
// the margin.
func (l deviance) unit(f *rows.Facts) float64 {
	mean, apart := math.Abs(f.LabelMean), f.LabelStd
	switch {
	case l.family == Binomial:
		return 1
	case l.family != Gaussian:
		apart = mean // labels of 0 or more typically differ from their mean by no more than the mean
	case apart == 0:
		apart = mean
	}
	unit := apart
	if l.power != 0 && mean > 0 {
		unit = float64(apart * kernel.Pow(mean, -l.power))
	}
	switch l.link {
	case Log:
		unit *= mean
	case Inverse:
		unit *= float64(mean * mean)
	}
	return unit
}

// Refuses implements objective.Loss.
func (l deviance) Refuses(y float64) string {
	switch {
	case l.family == Gaussian:
		return ""
	case l.family == Binomial && !(y >= 0 && y <= 1):
		return fmt.Sprintf("%v is no proportion: values of the family binomial are from 0 to 1", y)
	case y < 0:
		return fmt.Sprintf("%v is negative: values of the family %v are 0 or more", y, l.family)
	case l.power >= 2 && y == 0:
		return fmt.Sprintf("%v is not above 0: values of the family %v are above 0 with this power", y, l.family)
	}
	return ""
}

// At implements objective.Loss.
func (l deviance) At(b *objective.Batch) {
	n, k := b.N, b.K
	m, work := b.Work[:n], b.Loss[:n]
	for i := range m {
		m[i] = b.Margin[i*k] + l.shift
	}
	if k > 1 {
		clear(b.Slope[:n*k])
		if b.Curve != nil {
			clear(b.Curve[n : n*k*(k+1)/2])
		}
	}
	switch {
	case l.family == Binomial:
		l.proportions(b, m)
	case l.link == Log:
		l.logarithmic(b, m, work)
	default:
		l.direct(b, m)
	}
}

// put writes the slope and the second derivatives of row i. mean and variance are used for the
// statistics.
func (l deviance) put(b *objective.Batch, i int, slope, information, mean, variance float64) {
	b.Slope[i*b.K] = slope
	if b.Curve == nil {
		return
	}
	b.Curve[i] = information
	if !l.withStatistics {
		return
	}
	// The second derivative by margins a and b ≤ a is at (a(a+1)/2+b)·N. The two constants are
	// margins 1 and 2.
	r := b.Label[i] - mean
	b.Curve[2*b.N+i] = float64(r*r) / variance
	if l.family == Poisson {
		b.Curve[5*b.N+i] = saturated(b.Label[i])
	}
}

// logarithmic does what At does, for the link Log. It computes the results from mean^(1−power)
// and mean^(2−power) alone, and subtracts no large numbers. For the steps of an optimiser and
// powers above 1, it writes the actual second derivatives where they are positive. With powers
// up to 2 they are always positive.
func (l deviance) logarithmic(b *objective.Batch, m, room []float64) {
	p := l.power
	for i, x := range m {
		low, high := 1.0, 1.0
		if p != 1 {
			low = kernel.Exp((1 - p) * x)
		}
		if p != 2 {
			high = kernel.Exp((2 - p) * x)
		}
		y := b.Label[i]
		scaled := float64(y * low)
		switch p {
		case 0:
			r := y - low
			room[i] = 0.5 * float64(r*r)
			l.put(b, i, -r*low, high, low, 1)
			continue
		case 1:
			room[i] = high
			if y > 0 {
				room[i] = (high - y) - float64(y*(x-kernel.Log(y)))
			}
		case 2:
			room[i] = (scaled - 1) - (kernel.Log(y) - x)
		default:
			room[i] = scaled/(p-1) + high/(2-p) - float64(l.ofLabel(y))
		}
		mean, information := high/low, high
		if curve := float64((p-1)*scaled) + float64((2-p)*high); b.Stepping && p > 1 && curve > 0 {
			information = curve
		}
		l.put(b, i, high-scaled, information, mean, float64(mean*mean)/high)
	}
}

// ofLabel returns the terms of half the deviance that depend only on the label, for powers
// other than 0, 1 and 2.
func (l deviance) ofLabel(y float64) float64 {
	if y == 0 {
		return 0
	}
	return kernel.Pow(y, 2-l.power) / ((l.power - 1) * (2 - l.power))
}

// direct does what At does, for links in which the mean is the margin or its inverse. If the
// family cannot have the mean, the loss is infinite, so that the line search shortens the step.
func (l deviance) direct(b *objective.Batch, m []float64) {
	p := l.power
	for i, x := range m {
		mean, by := x, 1.0 // by is the derivative of the mean by the margin
		if l.link == Inverse {
			mean = 1 / x
			by = -float64(mean * mean)
		}
		y := b.Label[i]
		if p == 0 {
			r := y - mean
			b.Loss[i] = 0.5 * float64(r*r)
			l.put(b, i, -r*by, float64(by*by), mean, 1)
			continue
		}
		if !(mean > 0) || math.IsInf(mean, 1) {
			b.Loss[i] = math.Inf(1)
			l.put(b, i, 0, 0, 1, 1)
			continue
		}
		variance := mean
		switch p {
		case 1:
			b.Loss[i] = mean
			if y > 0 {
				b.Loss[i] = (mean - y) - float64(y*kernel.Log(mean/y))
			}
		case 2:
			variance = mean * mean
			ratio := y / mean
			b.Loss[i] = (ratio - 1) - kernel.Log(ratio)
		default:
			variance = kernel.Pow(mean, p)
			b.Loss[i] = float64(y*kernel.Pow(mean, 1-p))/(p-1) + kernel.Pow(mean, 2-p)/(2-p) - l.ofLabel(y)
		}
		l.put(b, i, (mean-y)/variance*by, float64(by*by)/variance, mean, variance)
	}
}

// proportions does what At does, for the family Binomial.
func (l deviance) proportions(b *objective.Batch, m []float64) {
	for i, x := range m {
		var mean, rest, logMean, logRest float64 // rest = 1−mean
		by := 1.0
		switch l.link {
		case Logit:
			mean, rest = kernel.Sigmoid(x), kernel.Sigmoid(-x)
			logMean, logRest = -kernel.Softplus(-x), -kernel.Softplus(x)
		case Log:
			mean, rest = kernel.Exp(x), -kernel.Expm1(x)
			logMean, by = x, mean
			logRest = kernel.Log(rest)
		default:
			mean, rest = x, 1-x
			logMean, logRest = kernel.Log(mean), kernel.Log(rest)
		}
		y := b.Label[i]
		if l.link != Logit && !(mean > 0 && rest > 0) {
			b.Loss[i] = math.Inf(1)
			l.put(b, i, 0, 0, 0.5, 0.25)
			continue
		}
		loss := 0.0
		if y > 0 {
			loss -= float64(y * (logMean - kernel.Log(y)))
		}
		if y < 1 {
			loss -= float64((1 - y) * (logRest - kernel.Log(1-y)))
		}
		b.Loss[i] = loss
		variance := mean * rest
		if l.link == Logit {
			l.put(b, i, mean-y, variance, mean, variance)
		} else {
			l.put(b, i, (mean-y)/variance*by, float64(by*by)/variance, mean, variance)
		}
	}
}

// saturated returns minus the log-likelihood of a Poisson count y with mean y, which is log y!
// − y·log y + y.
func saturated(y float64) float64 {
	if y == 0 {
		return 0
	}
	return linearmodel.LogGamma(y+1) - float64(y*kernel.Log(y)) + y
}

// mean returns the mean for a margin.
func (l Link) mean(margin float64) float64 {
	switch l {
	case Log:
		return kernel.Exp(margin)
	case Logit:
		return kernel.Sigmoid(margin)
	case Inverse:
		return 1 / margin
	}
	return margin
}

// of returns the margin for a mean. The margin is not finite if the link is not defined for the
// mean.
func (l Link) of(mean float64) float64 {
	switch l {
	case Log:
		return kernel.Log(mean)
	case Logit:
		return kernel.Log(mean / (1 - mean))
	case Inverse:
		return 1 / mean
	}
	return mean
}
