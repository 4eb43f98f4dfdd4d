package optim

import "math"

// The gradient says where to go and not how far: nothing relates its length to that of a
// step before there are two gradients to compare. What does is the curvature along it,
// for which a few rows are enough. Where labels or features are of unusual magnitudes,
// guesses are off by as many, and a search takes long to make up for it. Directions of
// L-BFGS have a natural step, 1, and still the minimum along them is mostly somewhat off:
// going there, as methods of conjugate gradients do, saves an iteration of six or so, each
// of which reads all rows.

// farPaces are the steps that are probed along the gradient: none, and powers of 4.
var farPaces = func() (steps [42]float64) {
	for i := 1; i < len(steps); i++ {
		steps[i] = math.Ldexp(1, 2*(i-21))
	}
	return steps
}()

// nearPaces are those along a direction of L-BFGS.
var nearPaces = [...]float64{0, 0.25, 0.5, 1, 2, 4, 8}

// probe has steps probed along the direction, where the derivative is slope.
func (w *work) probe(steps []float64, slope float64) {
	w.pacing, w.paces, w.slope = true, steps, slope
	w.line = w.penalty.along(w.v, w.direction)
}

// pace asks for a first step: the one at which the derivative would vanish if all rows
// changed as those that were probed. sums are their derivatives at the paces, and their
// weight.
func (w *work) pace(sums []float64) {
	w.pacing = false
	step := w.vanishing(sums)
	switch {
	case step > 0 && w.steepest:
		w.along(step)
	case w.steepest:
		w.stride(-w.slope)
	case step > 0:
		w.launch(step, math.Inf(1))
	default:
		w.launch(1, math.Inf(1))
	}
}

// vanishing returns a step, between two that were probed, at which the derivative is
// about 0, or 0 where it does not change its sign among them.
func (w *work) vanishing(sums []float64) float64 {
	weight := sums[len(w.paces)]
	// What the rows give is the change from the step 0, where the derivative is known: it
	// may be much smaller there than that of a few rows.
	derivative := func(i int) float64 {
		return w.slope + (sums[i]-sums[0])/weight + float64(w.paces[i]*w.line.bend)
	}
	before := derivative(1)
	for i := 2; i < len(w.paces) && before < 0; i++ {
		d := derivative(i)
		if !(d < 0) {
			return root(point{0, 0, w.slope}, point{w.paces[i-1], 0, before}, point{w.paces[i], 0, d})
		}
		before = d
	}
	return 0
}

// root returns a step between b and c, where the derivative changes its sign, at which it
// is about 0: that of the inverse parabola through a, b and c if that lies between them,
// else that of the line.
func root(a, b, c point) float64 {
	if !finite(c.d) {
		return b.t
	}
	ab, ac, bc := a.d-b.d, a.d-c.d, b.d-c.d
	t := a.t*(b.d*c.d)/(ab*ac) - b.t*(a.d*c.d)/(ab*bc) + c.t*(a.d*b.d)/(ac*bc)
	if t >= b.t && t <= c.t {
		return t
	}
	return b.t + float64((c.t-b.t)*(b.d/bc))
}
