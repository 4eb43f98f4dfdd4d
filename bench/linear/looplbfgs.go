package main

import (
	"math"
	"slices"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// loop minimises the mean logistic loss with an L2 penalty as package optim does: by L-BFGS
// with ten pairs (Nocedal and Wright, Numerical Optimization, 2nd ed., algorithm 7.4) over the
// coefficients of features scaled by their deviations. It keeps the margins of all rows, so
// that an iteration reads the rows once. A sample of 4,096 rows is used to estimate the first
// step length, and the multiples of the latest steps that are added to the direction. If the
// line search needs further points, it doubles or bisects the step, which is simpler than the
// search of package optim.
type loop struct {
	rows, sample block
	picked       []int     // rows of the sample
	chunk        int       // number of rows processed at a time
	inverse      []float64 // inverses of the deviations
	ridge        []float64 // second derivatives of the penalty
	reads        float64

	v, p      []float64 // parameters and direction
	g, next   []float64 // gradients at v and at the last point read
	beta      []float64 // buffer for the coefficients of the unscaled features
	m, q      []float64 // margins of all rows at v and along the direction
	pairs     []pair    // oldest first
	steps     [][]float64
	past      [][]float64 // margins of the sample along the latest steps, the most recent step first
	sm, sq    []float64   // margins of the sample at v and along the direction
	work      []float64   // buffer for the margins of a chunk or of the sample
	loss, low []float64   // buffers of the same length for losses and slopes
}

// pair has the step s of an iteration, the change y of the gradient, and their inner product.
type pair struct {
	s, y []float64
	sy   float64
}

const (
	loopPairs  = 10
	loopSteps  = 3
	loopSample = 4096
)

// loopPaces are the step lengths at which slopes are computed on the sample.
var loopPaces = [...]float64{0, 0.25, 0.5, 0.8, 1.25, 2, 4, 8}

// newLoop surveys the columns, and allocates memory.
func newLoop(raw rawRows, l2 float64) (*loop, error) {
	rows, err := newBlock(raw)
	if err != nil {
		return nil, err
	}
	l := &loop{rows: rows}
	n, d := l.rows.n, l.rows.d
	l.inverse, l.ridge = make([]float64, d), make([]float64, d)
	std, top := l.rows.deviations()
	for j, s := range std {
		if s == 0 {
			s = top[j]
		}
		if s > 0 {
			l.inverse[j] = 1 / s
		}
		l.ridge[j] = l2 * l.inverse[j] * l.inverse[j]
	}
	l.picked = make([]int, min(n, loopSample))
	for i := range l.picked {
		l.picked[i] = i * n / len(l.picked)
	}
	l.sample = l.rows.pick(l.picked)
	l.chunk = l.rows.chunkRows()
	for _, v := range []*[]float64{&l.v, &l.p, &l.g, &l.next, &l.beta} {
		*v = make([]float64, d)
	}
	for _, v := range []*[]float64{&l.work, &l.loss, &l.low, &l.sm, &l.sq} {
		*v = make([]float64, max(l.chunk, len(l.picked)))
	}
	l.m, l.q = make([]float64, n), make([]float64, n)
	l.sm, l.sq = l.sm[:len(l.picked)], l.sq[:len(l.picked)]
	return l, nil
}

// slopes writes to l.low, and returns, the slopes of the losses of some rows at the margins m +
// t·q. It also writes to l.work the values whose softplus are the losses. minus has the signs
// of the rows, see block.minus.
func (l *loop) slopes(minus, m, q []float64, t float64) []float64 {
	work, low := l.work[:len(minus)], l.low[:len(minus)]
	kernel.AddScaledTo(work, m, t, q)
	kernel.ProdTo(work, minus)
	kernel.SigmoidTo(low, work)
	kernel.ProdTo(low, minus)
	return low
}

// losses returns sum plus the losses of the n rows that were passed to the last call of slopes.
func (l *loop) losses(n int, sum float64) float64 {
	kernel.SoftplusTo(l.loss[:n], l.work[:n])
	for _, v := range l.loss[:n] {
		sum += v
	}
	return sum
}

// coefficients returns the coefficients of the unscaled features for parameters v.
func (l *loop) coefficients(v []float64) []float64 {
	copy(l.beta, v)
	kernel.ProdTo(l.beta, l.inverse)
	return l.beta
}

// read sets l.next to the gradient at v + t·p and returns the mean loss at that point. If fresh
// is set, the direction is new, and read first computes the margins along it.
func (l *loop) read(t float64, fresh bool) float64 {
	var beta []float64
	if fresh {
		beta = l.coefficients(l.p)
	}
	clear(l.next)
	var sum float64
	for lo := 0; lo < l.rows.n; lo += l.chunk {
		hi := min(lo+l.chunk, l.rows.n)
		part := l.rows.cut(lo, hi)
		if fresh {
			part.times(beta, l.q[lo:hi])
		}
		low := l.slopes(part.minus, l.m[lo:hi], l.q[lo:hi], t)
		sum = l.losses(part.n, sum)
		part.addTo(low, l.next)
	}
	n := float64(l.rows.n)
	for j, g := range l.next {
		l.next[j] = g*l.inverse[j]/n + float64(l.ridge[j]*(l.v[j]+float64(t*l.p[j])))
	}
	l.reads++
	return sum / n
}

// try returns the mean loss and its derivative by t at v + t·p, computed from the stored
// margins.
func (l *loop) try(t float64) (f, slope float64) {
	for lo := 0; lo < l.rows.n; lo += l.chunk {
		hi := min(lo+l.chunk, l.rows.n)
		low := l.slopes(l.rows.minus[lo:hi], l.m[lo:hi], l.q[lo:hi], t)
		f = l.losses(hi-lo, f)
		slope += kernel.Dot(low, l.q[lo:hi])
	}
	return f / float64(l.rows.n), slope / float64(l.rows.n)
}

// minimise reports the objective at the start and after each iteration. It ends when goOn
// returns false or when the line search finds no lower objective. goOn gets the objective.
func (l *loop) minimise(goOn func(value float64) bool) {
	value := l.read(0, false)
	l.g, l.next = l.next, l.g
	for goOn(value) {
		l.computeDirection()
		t, slope := l.pace()
		if !(slope < 0) {
			return
		}
		at, tilt, bend := float64(l.penalty(l.v, l.v)/2), l.penalty(l.v, l.p), l.penalty(l.p, l.p)
		line := func(t float64) float64 { return at + float64(t*(tilt+float64(t*bend/2))) }
		f := l.read(t, true) + line(t)
		d := kernel.Dot(l.next, l.p)
		var least, most = 0.0, math.Inf(1)
		for first := t; ; {
			// The strong Wolfe conditions, with a tolerance for rounding in the loss.
			low := f <= value+float64(1e-4*t*slope)+float64(1e-13*abs(value))
			if low && abs(d) <= -0.9*slope {
				if t != first {
					l.read(t, false)
				}
				break
			}
			if !low || d > 0 {
				most = t
			} else {
				least = t
			}
			if t = (least + most) / 2; math.IsInf(most, 1) {
				t = 2 * least
			}
			if t == least || t == most {
				return
			}
			f, d = l.try(t)
			f, d = f+line(t), d+tilt+float64(t*bend)
		}
		l.move(t)
		value = f
	}
}

// penalty returns the inner product of two vectors that is defined by the second derivatives of
// the penalty.
func (l *loop) penalty(x, y []float64) (sum float64) {
	for j, r := range l.ridge {
		sum += float64(r * x[j] * y[j])
	}
	return sum
}

// computeDirection sets l.p to the direction of L-BFGS for the gradient and the pairs.
func (l *loop) computeDirection() {
	for j, g := range l.g {
		l.p[j] = -g
	}
	var alpha [loopPairs]float64
	for i := len(l.pairs) - 1; i >= 0; i-- {
		h := l.pairs[i]
		alpha[i] = kernel.Dot(h.s, l.p) / h.sy
		kernel.Axpy(-alpha[i], h.y, l.p)
	}
	if k := len(l.pairs); k > 0 {
		h := l.pairs[k-1]
		kernel.Scale(h.sy/kernel.Dot(h.y, h.y), l.p)
	}
	for i, h := range l.pairs {
		kernel.Axpy(alpha[i]-kernel.Dot(h.y, l.p)/h.sy, h.s, l.p)
	}
}

// pace replaces the direction by a combination of the direction and the latest steps. The
// weights of the combination are computed from second derivatives on the sample. It returns the
// first step length and the derivative along the direction.
func (l *loop) pace() (t, slope float64) {
	axes, at := append([][]float64{l.p}, l.steps...), append([][]float64{l.sq}, l.past...)
	l.sample.times(l.coefficients(l.p), l.sq)
	for i, row := range l.picked {
		l.sm[i] = l.m[row]
	}
	n := float64(l.sample.n)
	low := l.slopes(l.sample.minus, l.sm, l.sq, 0)
	var h [loopSteps + 1][loopSteps + 1]float64
	var b [loopSteps + 1]float64
	for i, x := range at {
		b[i] = -kernel.Dot(l.g, axes[i])
		for j, y := range at[:i+1] {
			var sum float64
			for r, s := range low {
				sum += float64((abs(s) - float64(s*s)) * float64(x[r]*y[r]))
			}
			h[i][j] = sum/n + l.penalty(axes[i], axes[j])
		}
	}
	mix := solve(h, b, len(at))
	scale := 1.0
	if len(l.pairs) == 0 {
		scale, mix[0] = mix[0], 1 // the direction is the negative gradient, whose length says nothing about the step
	}
	kernel.Scale(mix[0], l.p)
	kernel.Scale(mix[0], l.sq)
	for i := 1; i < len(at); i++ {
		kernel.Axpy(mix[i], axes[i], l.p)
		kernel.Axpy(mix[i], at[i], l.sq)
	}
	slope = kernel.Dot(l.g, l.p)
	return scale * l.vanishing(scale, slope), slope
}

// vanishing returns the step length, in units of unit, at which the derivative would be 0 if
// all rows were like the sample. It interpolates by an inverse parabola through the derivatives
// at the paces around the change of sign. If the sign does not change between the paces, it
// returns 1.
func (l *loop) vanishing(unit, slope float64) float64 {
	var d [len(loopPaces)]float64
	bend := l.penalty(l.p, l.p)
	for i, t := range loopPaces {
		d[i] = kernel.Dot(l.slopes(l.sample.minus, l.sm, l.sq, unit*t), l.sq) / float64(l.sample.n)
	}
	for i := len(d) - 1; i >= 0; i-- {
		d[i] += slope - d[0] + float64(unit*loopPaces[i]*bend)
	}
	for i := 2; i < len(d) && d[i-1] < 0; i++ {
		if d[i] < 0 {
			continue
		}
		a, b, c := d[0], d[i-1], d[i]
		t := loopPaces[i-1]*(a*c)/((b-a)*(b-c)) + loopPaces[i]*(a*b)/((c-a)*(c-b))
		return min(max(t, loopPaces[i-1]), loopPaces[i])
	}
	return 1
}

// solve returns h⁻¹·b for the first n unknowns, by Cholesky's method on the lower triangle of
// h. It returns the first unit vector if h is not safely positive definite.
func solve(h [loopSteps + 1][loopSteps + 1]float64, b [loopSteps + 1]float64, n int) [loopSteps + 1]float64 {
	for i := range n {
		square := h[i][i]
		for j := range i + 1 {
			for k := range j {
				h[i][j] -= float64(h[i][k] * h[j][k])
			}
			if j < i {
				h[i][j] /= h[j][j]
			}
		}
		if !(h[i][i] > 1e-8*square) {
			return [loopSteps + 1]float64{1}
		}
		h[i][i] = math.Sqrt(h[i][i])
		for k := range i {
			b[i] -= float64(h[i][k] * b[k])
		}
		b[i] /= h[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		b[i] /= h[i][i]
		for k := range i {
			b[k] -= float64(h[i][k] * b[i])
		}
	}
	return b
}

// move adds t times the direction to the parameters and the margins, and stores the pair of
// this step.
func (l *loop) move(t float64) {
	kernel.Axpy(t, l.q, l.m)
	kernel.Axpy(t, l.p, l.v)
	s, y := slices.Clone(l.p), slices.Clone(l.next)
	kernel.Scale(t, s)
	kernel.Axpy(-1, l.g, y)
	if len(l.pairs) == loopPairs {
		l.pairs = slices.Delete(l.pairs, 0, 1)
	}
	if sy := kernel.Dot(s, y); sy > 0 {
		l.pairs = append(l.pairs, pair{s, y, sy})
	}
	past := make([]float64, len(l.picked))
	for i, row := range l.picked {
		past[i] = t * l.q[row]
	}
	l.steps, l.past = slices.Insert(l.steps, 0, s), slices.Insert(l.past, 0, past)
	l.steps, l.past = l.steps[:min(len(l.steps), loopSteps)], l.past[:min(len(l.past), loopSteps)]
	l.g, l.next = l.next, l.g
}
