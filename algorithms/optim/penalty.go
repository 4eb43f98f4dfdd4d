package optim

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// penalty is the penalty on the parameters.
type penalty struct {
	l1, l2  float64
	factors []float64
	space   *blocks
	scaled  [maxAxes][]float64 // vectors of a block, multiplied by the factors
}

// value returns the penalty of v, which must have all parameters.
func (p *penalty) value(v []float64) float64 {
	return p.combine(p.space.sum(func(r sharding.Range) float64 { return p.sumAbsolutes(r, v, nil) }),
		p.space.sum(func(r sharding.Range) float64 {
			var square [1]float64
			p.sumSquares(r, square[:], v)
			return square[0]
		}))
}

// combine returns the penalty. absolute and squares are the results of sumAbsolutes and
// sumSquares, summed over all parameters.
func (p *penalty) combine(absolute, squares float64) float64 {
	return float64(p.l1*absolute) + float64(float64(p.l2*squares)/2)
}

// sumSquares writes Σ (f·x)·(f·y) over the range r to out, for all pairs x, y of the given
// vectors. The order is that of a packed lower triangle. Without an L2 penalty it writes zeros.
func (p *penalty) sumSquares(r sharding.Range, out []float64, vectors ...[]float64) {
	if p.l2 == 0 {
		clear(out)
		return
	}
	next := 0
	for i, v := range vectors {
		if p.scaled[i] == nil {
			p.scaled[i] = make([]float64, p.space.length)
		}
		x := p.scaled[i][:r.Len()]
		copy(x, v[r.Lo:r.Hi])
		kernel.ProdTo(x, p.factors[r.Lo:r.Hi])
		for j := range i + 1 {
			out[next] = kernel.Dot(x, p.scaled[j][:len(x)])
			next++
		}
	}
}

// sumAbsolutes returns Σ |f·(v+q)| over the range r. A nil q means zeros. Without an L1 penalty
// the result is 0.
func (p *penalty) sumAbsolutes(r sharding.Range, v, q []float64) float64 {
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

// gradient sets g to the gradient of the smooth part of F at v + step·q. sums is the gradient
// of the losses. The L2 penalty is included, the L1 penalty is not. A nil q means zeros.
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

// pseudoGradient sets pg to the pseudo-gradient at v, the subgradient nearest to zero (Andrew
// and Gao, Scalable training of L1-regularized log-linear models, ICML 2007, equation 4). g is
// the gradient of the smooth part.
func (p *penalty) pseudoGradient(v, g, pg []float64) {
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

// line is the penalty along v + t·q as a function of t. The function is quadratic as long as no
// coordinate changes sign.
type line struct {
	start, slope, curvature float64
	kink                    float64 // the part of the slope that comes from the L1 penalty
}

// onLine returns the penalty along v + t·q. sums has the three sums of sumSquares for v and q,
// then the result of sumAbsolutes for v, and then its result for v+q.
func (p *penalty) onLine(sums []float64) line {
	l := line{start: float64(float64(p.l2*sums[0]) / 2), slope: float64(p.l2 * sums[1]), curvature: float64(p.l2 * sums[2])}
	if p.l1 > 0 {
		absolute := float64(p.l1 * sums[3])
		l.start += absolute
		l.kink = float64(p.l1*sums[4]) - absolute
		l.slope += l.kink
	}
	return l
}

// value returns the penalty at step t, and derivative returns its derivative by t.
func (l line) value(t float64) float64 {
	return l.start + float64(t*(l.slope+float64(float64(t*l.curvature)/2)))
}
func (l line) derivative(t float64) float64 { return l.slope + float64(t*l.curvature) }
