package optim

import "math"

// The gradient says where to go and not how far: nothing relates its length to that of a
// step before there are two gradients to compare. What does is the curvature along it,
// for which a few rows are enough. Where labels or features are of unusual magnitudes,
// guesses are off by as many, and a search takes long to make up for it. Directions of
// L-BFGS have a natural step, 1, and still the minimum along them is mostly somewhat off:
// going there, as methods of conjugate gradients do, saves an iteration of six or so, each
// of which reads all rows.
//
// So before rows are read a few of them are probed: for the curvature, which gives a step
// by Newton's method, and then for the slopes around that step, where the losses are not
// quadratic.

// nearSteps are the steps that are probed around that of Newton's method.
var nearSteps = [...]float64{0, 0.25, 0.5, 0.8, 1.25, 2, 4, 8}

// farSteps are those along the gradient where no slope changes its sign among the near
// ones: none, and powers of 4.
var farSteps = func() (steps [42]float64) {
	for i := 1; i < len(steps); i++ {
		steps[i] = math.Ldexp(1, 2*(i-21))
	}
	return steps
}()

// mostProbes is how often rows are probed for a direction at most: for the curvature, near
// and far.
const mostProbes = 3

// probed is what rows are probed for.
type probed int

const (
	noProbe        probed = iota
	probeCurvature        // second derivatives along the direction, and in the plane
	probeSlopes           // the derivatives along the mixture, at the trials
)

// probing is what finds the first step along a direction.
type probing struct {
	plane
	asks        probed
	trials      []float64
	scaled      [len(nearSteps)]float64
	far         bool    // the trials are the far ones
	slope, bend float64 // of F along the mixture, and of the penalty's derivative
}

// length returns how many numbers a probe gives.
func (p *probing) length() int {
	switch p.asks {
	case probeCurvature:
		return triangle(p.dim) + 1
	case probeSlopes:
		return len(p.trials) + 1
	}
	return 0
}

// probe has the direction probed, from the curvature on, given the slope along it and the
// squares of it that the penalty has.
func (w *work) probe(slope, squares float64) {
	p := &w.probing
	p.asks, p.far = probeCurvature, false
	p.span(w, !w.Steepest, slope, float64(w.penalty.l2*squares))
}

// firstStep takes what was probed, and asks for more or for the first step.
func (w *work) firstStep(sums []float64) error {
	p := &w.probing
	if p.asks == probeCurvature {
		whole := p.solve(sums[:triangle(p.dim)], sums[triangle(p.dim)])
		p.asks, p.trials, p.scaled = probeSlopes, p.scaled[:], nearSteps
		if w.Steepest {
			// The direction is the gradient itself: its step bears the scale.
			for i := range p.scaled {
				p.scaled[i] *= p.mix[0]
			}
			if !whole {
				p.trials, p.far = farSteps[:], true
			}
			p.mix[0] = 1
		}
		p.slope, p.bend = p.along()
		return nil
	}
	step := p.vanishing(sums)
	if step == 0 && w.Steepest && !p.far {
		p.trials, p.far = farSteps[:], true
		return nil
	}
	p.asks = noProbe
	switch {
	case step == 0 && w.Steepest:
		return w.stride(-p.slope)
	case step == 0:
		return w.launch(1, math.Inf(1))
	case w.Steepest:
		return w.along(step)
	}
	p.blend(w.direction)
	if w.split {
		p.blend(w.whole) // which is the direction, all of it: there are no steps to mix in
	}
	return w.launch(step, math.Inf(1))
}

// vanishing returns the step at which the derivative would vanish if all rows changed as
// those that were probed; 0 where it does not change its sign among the trials. sums are
// their derivatives at the trials, and their weight.
func (p *probing) vanishing(sums []float64) float64 {
	weight := sums[len(p.trials)]
	// What the rows give is the change from the step 0, where the derivative is known: it
	// may be much smaller there than that of a few rows.
	derivative := func(i int) float64 {
		return p.slope + (sums[i]-sums[0])/weight + float64(p.trials[i]*p.bend)
	}
	before := derivative(1)
	for i := 2; i < len(p.trials) && before < 0; i++ {
		d := derivative(i)
		if !(d < 0) {
			return root(point{0, 0, p.slope}, point{p.trials[i-1], 0, before}, point{p.trials[i], 0, d})
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
