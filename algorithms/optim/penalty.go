package optim

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// penalty is the penalty on the parameters.
type penalty struct {
	l1, l2  float64
	factors []float64
	space   *blocks
	room    [mostPlane][]float64 // for vectors of a block times the factors
}

// at returns the penalty of the parameters v, where all are kept.
func (p *penalty) at(v []float64) float64 {
	return p.of(p.space.sum(func(r shared.Range) float64 { return p.absoluteIn(r, v, nil) }),
		p.space.sum(func(r shared.Range) float64 {
			var square [1]float64
			p.squaresIn(r, square[:], v)
			return square[0]
		}))
}

// of returns the penalty, given what absoluteIn and squaresIn of the parameters come to.
func (p *penalty) of(absolute, squares float64) float64 {
	return float64(p.l1*absolute) + float64(float64(p.l2*squares)/2)
}

// squaresIn writes, over the places of r, Σ (f·x)·(f·y) of all pairs of some vectors to out,
// those of a vector with itself and the ones before it one behind the other; zeros without
// an L2 penalty.
func (p *penalty) squaresIn(r shared.Range, out []float64, vectors ...[]float64) {
	if p.l2 == 0 {
		clear(out)
		return
	}
	at := 0
	for i, v := range vectors {
		if p.room[i] == nil {
			p.room[i] = make([]float64, p.space.length)
		}
		x := p.room[i][:r.Len()]
		copy(x, v[r.Lo:r.Hi])
		kernel.ProdTo(x, p.factors[r.Lo:r.Hi])
		for j := range i + 1 {
			out[at] = kernel.Dot(x, p.room[j][:len(x)])
			at++
		}
	}
}

// absoluteIn returns Σ |f·(v+q)| over the places of r; a nil q is zeros; 0 without an L1
// penalty.
func (p *penalty) absoluteIn(r shared.Range, v, q []float64) float64 {
	var sum float64
	if p.l1 == 0 {
		return sum
	}
	for i := r.Lo; i < r.Hi; i++ {
		at := v[i]
		if q != nil {
			at += q[i]
		}
		sum += math.Abs(p.factors[i] * at)
	}
	return sum
}

// gradient sets g to the gradient of the smooth part of F at v + step·q, of which sums
// is that of the losses: of the squares, but not of the absolute values. A nil q is
// zeros.
func (p *penalty) gradient(sums []float64, weight float64, v, q []float64, step float64, g []float64) {
	for i := range g {
		g[i] = sums[i] / weight
	}
	if p.l2 == 0 {
		return
	}
	for i := range g {
		at := v[i]
		if q != nil {
			at += float64(step * q[i])
		}
		g[i] += float64(float64(p.l2*p.factors[i]) * (p.factors[i] * at))
	}
}

// pseudo sets pg to the pseudo-gradient at v, where g is the gradient of the smooth
// part: of the subgradients the one nearest to zero (Andrew and Gao, Scalable training
// of L1-regularized log-linear models, ICML 2007, equation 4).
func (p *penalty) pseudo(v, g, pg []float64) {
	for i := range pg {
		c := float64(p.l1 * math.Abs(p.factors[i]))
		switch {
		case v[i] > 0:
			pg[i] = g[i] + c
		case v[i] < 0:
			pg[i] = g[i] - c
		case g[i]+c < 0:
			pg[i] = g[i] + c
		case g[i]-c > 0:
			pg[i] = g[i] - c
		default:
			pg[i] = 0
		}
	}
}

// line is the penalty along v + t·q: quadratic in t, where no coordinate changes sign.
type line struct {
	at, slope, bend float64
	kink            float64 // what of the slope is that of the absolute values
}

// along returns the penalty along v + t·q from what squaresIn of v and q, and absoluteIn of
// v, and of v and q, come to.
func (p *penalty) along(sums []float64) line {
	l := line{at: float64(float64(p.l2*sums[0]) / 2), slope: float64(p.l2 * sums[1]), bend: float64(p.l2 * sums[2])}
	if p.l1 > 0 {
		at := float64(p.l1 * sums[3])
		l.at += at
		l.kink = float64(p.l1*sums[4]) - at
		l.slope += l.kink
	}
	return l
}

// value and derivative are those of the penalty at a step.
func (l line) value(t float64) float64 {
	return l.at + float64(t*(l.slope+float64(float64(t*l.bend)/2)))
}
func (l line) derivative(t float64) float64 { return l.slope + float64(t*l.bend) }
