package objective

import (
	"cmp"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// Kinked is a piecewise linear loss of one margin. The loss is the maximum of α·r − ε·|α| over
// α from lo to hi, where r is linear in the margin. Hinge, EpsilonInsensitive and Quantile are
// such losses.
type Kinked interface {
	Loss
	line(label float64) line
}

// line is a Kinked loss of one row with margin m: r = c − s·m, and α ranges from lo ≤ 0 to hi ≥
// 0.
type line struct{ s, c, lo, hi, epsilon float64 }

// Smooth is a smooth version of a Kinked loss, for methods that minimise smooth functions:
//
//	max over α in [lo, hi] of α·r − ε·|α| − ½·μ·(α−a)²
//
// The centre a, one number for each row, is 0 at first. While a is 0, Smooth is below the loss
// by at most ½·μ, and equal to the loss except near the kinks (Nesterov, Smooth minimization of
// non-smooth functions, Mathematical Programming 103, 2005). After a minimisation, every a is
// moved to the α that attains the maximum, μ is divided by Shrink, and the next minimisation
// begins at the parameters found. This is the proximal point method on the dual problem
// (Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm,
// Mathematics of Operations Research 1, 1976). It reaches the minimum of the loss itself even
// at a fixed μ, and needs few rounds if μ falls from round to round. If a stayed 0, μ would
// have to be as small as the permitted error, and L-BFGS and Newton's method would need too
// many iterations.
//
// The functions of optim.Smoothing, which the evaluator of Linear implements, move a and
// compute the duality gap.
type Smooth struct {
	Loss Kinked
	// Mu is the first μ, in units of the margins; 0 means 0.1. Around a kink, Smooth is
	// quadratic over a range of r of length μ·(hi−lo).
	Mu float64
	// After each round, μ is divided by Shrink, which must be 1 or more; 0 means 10.
	Shrink float64
}

func (l Smooth) shrink() float64 { return cmp.Or(l.Shrink, 10) }
func (l Smooth) mu() float64     { return cmp.Or(l.Mu, 0.1) }

// String implements Loss.
func (l Smooth) String() string { return "smooth " + l.Loss.String() }

// Label implements Loss.
func (l Smooth) Label() rows.LabelKind { return l.Loss.Label() }

// Shape implements Loss.
func (l Smooth) Shape(f *rows.Facts) (Shape, error) {
	if l.Mu != 0 && !finitePositive(l.Mu) {
		return Shape{}, fmt.Errorf("the smoothing of the %s loss is %v: want a number above 0, or 0 for 0.1", l.Loss, l.Mu)
	}
	if l.Shrink != 0 && !(l.Shrink >= 1 && finitePositive(l.Shrink)) {
		return Shape{}, fmt.Errorf("the smoothing of the %s loss is to shrink by %v: want 1 or more, or 0 for 10", l.Loss, l.Shrink)
	}
	return l.Loss.Shape(f)
}

func (l Smooth) begin(f *rows.Facts) float64 {
	if loss, ok := l.Loss.(beginning); ok {
		return loss.begin(f)
	}
	return 0
}

// Refuses implements Loss.
func (l Smooth) Refuses(label float64) string { return l.Loss.Refuses(label) }

// At implements Loss.
func (l Smooth) At(b *Batch) {
	mu := l.mu()
	if b.Mu > 0 {
		mu = b.Mu
	}
	for i, m := range b.Margin[:b.N] {
		a := 0.0
		if b.Prox != nil {
			a = b.Prox[i]
		}
		row := l.Loss.line(b.Label[i])
		r := row.c - float64(row.s*m)
		alpha, inside := row.maximizer(r, a, mu)
		apart := alpha - a
		loss := float64(alpha * r)
		if alpha < 0 {
			loss += float64(row.epsilon * alpha)
		} else {
			loss -= float64(row.epsilon * alpha)
		}
		b.Loss[i] = loss - float64(0.5*float64(mu*float64(apart*apart)))
		b.Slope[i] = -row.s * alpha
		if b.Curve != nil {
			b.Curve[i] = 0
			if inside {
				b.Curve[i] = float64(row.s*row.s) / mu
			}
		}
	}
}

// maximizer returns the α that attains the maximum in Smooth. inside reports whether α changes
// with r: it does not at lo, at hi and at the kink of |α|.
func (l line) maximizer(r, a, mu float64) (alpha float64, inside bool) {
	alpha = a + r/mu
	if l.epsilon > 0 {
		t := l.epsilon / mu
		switch {
		case alpha > t:
			alpha -= t
		case alpha < -t:
			alpha += t
		case alpha == alpha:
			return 0, false
		}
	}
	switch {
	case alpha <= l.lo:
		return l.lo, false
	case alpha >= l.hi:
		return l.hi, false
	}
	return alpha, true
}
