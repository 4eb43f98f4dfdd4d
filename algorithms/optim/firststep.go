package optim

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// The first gradient gives a direction but no distance: the length of a gradient says nothing
// about the length of a step until it can be compared with a second gradient. The curvature
// along the gradient gives the distance, and a few rows are enough to estimate it. Without an
// estimate, the first step is a guess. If labels or features have unusual magnitudes, the guess
// is wrong by orders of magnitude, and a search takes long to correct it. For directions of
// L-BFGS the usual step is 1, but the minimum along such a direction is mostly at another step.
// Going to that minimum, as conjugate gradient methods do, saves about one iteration in six,
// and thus a read of all rows each time.
//
// So a few rows are probed before all rows are read. The first probe measures the curvature,
// which gives the step of Newton's method. The second probe measures slopes around that step,
// because the losses may not be quadratic there.

// nearSteps are the steps probed around the step of Newton's method, relative to it.
var nearSteps = [...]float64{0, 0.25, 0.5, 0.8, 1.25, 2, 4, 8}

// farSteps are the steps along the gradient that are probed if the slope has the same sign at
// all near steps: 0 and powers of 4.
var farSteps = func() (steps [42]float64) {
	for i := 1; i < len(steps); i++ {
		steps[i] = math.Ldexp(1, 2*(i-21))
	}
	return steps
}()

// maxProbes is the largest number of probes for a direction: curvature, near steps and far
// steps.
const maxProbes = 3

// probeKind tells what a probe measures.
type probeKind int

const (
	noProbe        probeKind = iota
	probeCurvature           // second derivatives in the plane of the direction and the latest steps
	probeSlopes              // derivatives along the mixture of direction and latest steps, at the steps in trials
)

// probing is the search for the first step along a direction.
type probing struct {
	plane
	kind             probeKind
	trials           []float64
	scaledTrials     [len(nearSteps)]float64
	hasFarSteps      bool    // whether trials has the far steps
	slope, curvature float64 // along the mixture: the first derivative of F, and the second derivative of the penalty
}

// length returns the number of values that a probe sums.
func (p *probing) length() int {
	switch p.kind {
	case probeCurvature:
		return triangle(p.dim) + 1
	case probeSlopes:
		return len(p.trials) + 1
	}
	return 0
}

// startProbes starts the probes along the direction with the probe of the curvature. slope is the
// slope of F along the direction, and squares is Σ (f·direction)², from which the curvature of
// the penalty is computed.
func (w *work) startProbes(slope, squares float64) {
	p := &w.probing
	p.kind, p.hasFarSteps = probeCurvature, false
	p.setAxes(w, !w.Steepest, slope, float64(w.penalty.l2*squares))
}

// takeProbe takes the sums of a probe. It requests another probe, or the first step.
func (w *work) takeProbe(sums []float64) error {
	p := &w.probing
	if p.kind == probeCurvature {
		solved := p.solve(sums[:triangle(p.dim)], sums[triangle(p.dim)])
		p.kind, p.trials, p.scaledTrials = probeSlopes, p.scaledTrials[:], nearSteps
		if w.Steepest {
			// The direction is the negative gradient, whose length means nothing. The steps are
			// therefore scaled by the step of Newton's method.
			for i := range p.scaledTrials {
				p.scaledTrials[i] *= p.mix[0]
			}
			if !solved {
				p.trials, p.hasFarSteps = farSteps[:], true
			}
			p.mix[0] = 1
		}
		p.slope, p.curvature = p.alongMix()
		return nil
	}
	step := p.zeroOfSlope(sums)
	if step == 0 && w.Steepest && !p.hasFarSteps {
		p.trials, p.hasFarSteps = farSteps[:], true
		return nil
	}
	p.kind = noProbe
	switch {
	case step == 0 && w.Steepest:
		return w.guessFirstStep(-p.slope)
	case step == 0:
		return w.beginSearch(1, math.Inf(1))
	case w.Steepest:
		return w.stepAlongGradient(step)
	}
	p.applyMix(w.direction)
	if w.split {
		p.applyMix(w.gathered) // the vector gathered last is the direction, and with split parameters no steps are mixed in
	}
	return w.beginSearch(step, math.Inf(1))
}

// zeroOfSlope returns the step at which the derivative of F would vanish if all rows were like
// the probed rows. It returns 0 if the derivative has the same sign at all steps in trials.
// sums has the derivatives of the probed rows at these steps, and then the total weight of the
// rows.
func (p *probing) zeroOfSlope(sums []float64) float64 {
	weight := sums[len(p.trials)]
	// Only the change of the derivative since step 0 is taken from the probed rows. At step 0
	// the derivative over all rows is known, and it may be much smaller than the derivative
	// over a few rows.
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

// root returns a step between b and c at which the derivative is about 0. The derivative must
// change its sign between b and c. The step is the zero of the inverse parabola through a, b
// and c if that zero lies between b and c. Otherwise it is the zero of the straight line
// through b and c.
func root(a, b, c point) float64 {
	if !kernel.Finite(c.d) {
		return b.t
	}
	ab, ac, bc := a.d-b.d, a.d-c.d, b.d-c.d
	t := a.t*(b.d*c.d)/(ab*ac) - b.t*(a.d*c.d)/(ab*bc) + c.t*(a.d*b.d)/(ac*bc)
	if t >= b.t && t <= c.t {
		return t
	}
	return b.t + float64((c.t-b.t)*(b.d/bc))
}
