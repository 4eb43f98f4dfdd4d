package optim

import "math"

// The gradient gives a direction but no distance: before there are two gradients to compare,
// its length says nothing about the length of a step. The curvature along it does, and a few
// rows are enough to estimate that. If labels or features have unusual magnitudes, a guess is
// off by orders of magnitude too, and a search takes long to correct it. Directions of L-BFGS
// have a natural step, 1, but the minimum along them is mostly somewhere else. Going to that
// minimum, as conjugate gradient methods do, saves about one iteration in six, each of which
// reads all rows.
//
// So a few rows are probed before all rows are read: for the curvature, which gives a step by
// Newton's method, and then for the slopes around that step, where the losses are not
// quadratic.

// nearSteps are the steps probed around that of Newton's method.
var nearSteps = [...]float64{0, 0.25, 0.5, 0.8, 1.25, 2, 4, 8}

// farSteps are the steps probed if no slope changes its sign among the near ones: 0 and powers
// of 4, along the gradient.
var farSteps = func() (steps [42]float64) {
	for i := 1; i < len(steps); i++ {
		steps[i] = math.Ldexp(1, 2*(i-21))
	}
	return steps
}()

// mostProbes is the largest number of probes for a direction: for the curvature, near and far.
const mostProbes = 3

// probeKind is the subject of a probe.
type probeKind int

const (
	noProbe        probeKind = iota
	probeCurvature           // second derivatives in the plane of the direction and the latest steps
	probeSlopes              // derivatives along the mixture, at the trials
)

// probing finds the first step along a direction.
type probing struct {
	plane
	kind             probeKind
	trials           []float64
	scaled           [len(nearSteps)]float64
	far              bool    // the trials are the far steps
	slope, curvature float64 // derivatives along the mixture: the first of F, the second of the penalty
}

// length returns the number of values of a probe.
func (p *probing) length() int {
	switch p.kind {
	case probeCurvature:
		return triangle(p.dim) + 1
	case probeSlopes:
		return len(p.trials) + 1
	}
	return 0
}

// probe starts the probes of the direction with the curvature. slope is the slope along it, and
// squares what the penalty needs of the direction's squares.
func (w *work) probe(slope, squares float64) {
	p := &w.probing
	p.kind, p.far = probeCurvature, false
	p.span(w, !w.Steepest, slope, float64(w.penalty.l2*squares))
}

// firstStep takes the result of a probe, and asks for another probe or for the first step.
func (w *work) firstStep(sums []float64) error {
	p := &w.probing
	if p.kind == probeCurvature {
		whole := p.solve(sums[:triangle(p.dim)], sums[triangle(p.dim)])
		p.kind, p.trials, p.scaled = probeSlopes, p.scaled[:], nearSteps
		if w.Steepest {
			// The direction is the gradient itself, so the step has to carry the scale.
			for i := range p.scaled {
				p.scaled[i] *= p.mix[0]
			}
			if !whole {
				p.trials, p.far = farSteps[:], true
			}
			p.mix[0] = 1
		}
		p.slope, p.curvature = p.along()
		return nil
	}
	step := p.zeroOfSlope(sums)
	if step == 0 && w.Steepest && !p.far {
		p.trials, p.far = farSteps[:], true
		return nil
	}
	p.kind = noProbe
	switch {
	case step == 0 && w.Steepest:
		return w.guessStep(-p.slope)
	case step == 0:
		return w.beginSearch(1, math.Inf(1))
	case w.Steepest:
		return w.stepAlongGradient(step)
	}
	p.applyMix(w.direction)
	if w.split {
		p.applyMix(w.whole) // which is the direction itself: there are no steps to mix in
	}
	return w.beginSearch(step, math.Inf(1))
}

// zeroOfSlope returns the step at which the derivative would vanish if all rows were like the
// probed ones. It returns 0 if the derivative does not change its sign among the trials. sums
// are the derivatives of the probed rows at the trials, and their weight.
func (p *probing) zeroOfSlope(sums []float64) float64 {
	weight := sums[len(p.trials)]
	// The rows give the change from step 0, where the derivative over all rows is known: that
	// may be much smaller than the derivative over a few rows.
	derivative := func(i int) float64 {
		return p.slope + (sums[i]-sums[0])/weight + float64(p.trials[i]*p.curvature)
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

// root returns a step between b and c, where the derivative changes its sign, at which it is
// about 0. That is the step of the inverse parabola through a, b and c if it lies between b and
// c, and otherwise that of the line.
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
