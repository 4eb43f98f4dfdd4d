package optim

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// search is a line search as a state machine. It gets values and derivatives of φ(t) = F(v +
// t·p), and proposes the next steps to evaluate. It searches for the strong Wolfe conditions
//
//	φ(t) ≤ φ(0) + c1·t·φ'(0) + noise    |φ'(t)| ≤ c2·|φ'(0)|
//
// by bracketing and zooming with safeguarded cubic interpolation (Nocedal and Wright, Numerical
// Optimization, 2nd ed., algorithms 3.5 and 3.6). The noise bounds the effect of rounding on φ:
// without this term, it depends on rounding near the optimum whether the first condition holds
// (Hager and Zhang, A new conjugate gradient method with guaranteed descent and an efficient
// line search, SIAM J. Optim. 16, 2005, have a similar term). Several steps may be evaluated at
// a time; then they divide the bracket into several parts.
type search struct {
	f0, d0     float64
	noise      float64
	limit      float64 // largest step
	backtracks bool    // whether a shortened step, or a step at the limit, needs to meet only the first condition
	bracketed  bool    // the bracket is known
	lo, hi     point   // ends of the bracket; φ is lower at lo. Without a bracket, lo is the latest point
	before     point   // without a bracket, the point before lo
	olderWidth float64 // width of the bracket two points ago
	width      float64 // width of the bracket one point ago
	tried      int
	best       point // the lowest point that meets the first condition, at t > 0
}

// point is a step t with φ(t) and φ'(t).
type point struct{ t, f, d float64 }

const (
	armijo    = 1e-4  // c1
	curvature = 0.9   // c2
	rounding  = 1e-13 // noise, relative to φ(0)
	maxSteps  = 40    // largest number of steps that one search evaluates
)

// searchStatus is the result of evaluating a point.
type searchStatus int

const (
	searching searchStatus = iota // further steps are needed
	accepts                       // the point is accepted
	fails                         // the search has failed; best is the only usable point
)

// begin starts a search along a direction with φ(0) = f0 and φ'(0) = d0 < 0. limit is the
// largest step, and backtracks is the value of the field of that name.
func (s *search) begin(f0, d0, limit float64, backtracks bool) {
	*s = search{
		f0: f0, d0: d0, noise: rounding * math.Abs(f0), limit: limit, backtracks: backtracks,
		lo: point{0, f0, d0}, before: point{0, f0, d0}, olderWidth: math.Inf(1), width: math.Inf(1),
	}
}

// sufficientDecrease reports whether a point meets the first condition.
func (s *search) sufficientDecrease(p point) bool {
	return p.f <= s.f0+float64(float64(armijo*p.t)*s.d0)+s.noise
}

// acceptable reports whether a point that meets the first condition can be accepted.
func (s *search) acceptable(p point) bool {
	if s.backtracks && s.bracketed || p.t >= s.limit && p.d <= 0 {
		return true
	}
	if s.backtracks {
		return p.t >= s.limit || p.d >= curvature*s.d0
	}
	return math.Abs(p.d) <= -curvature*s.d0
}

// add takes the point t with f = φ(t) and d = φ'(t). Points outside of the bracket are ignored.
func (s *search) add(t, f, d float64) searchStatus {
	if s.bracketed && !(min(s.lo.t, s.hi.t) < t && t < max(s.lo.t, s.hi.t)) || !s.bracketed && t <= s.lo.t {
		return searching
	}
	s.tried++
	p := point{t, f, d}
	if !kernel.Finite(f) || !kernel.Finite(d) {
		p.f, p.d = math.Inf(1), math.Inf(1)
	}
	low := s.sufficientDecrease(p)
	if low {
		if s.best.t == 0 || p.f < s.best.f {
			s.best = p
		}
		if s.acceptable(p) {
			s.best = p
			return accepts
		}
	}
	switch {
	case !low || p.f > s.lo.f+s.noise:
		s.hi, s.bracketed = p, true
	case !s.bracketed && p.d >= 0:
		s.lo, s.hi, s.bracketed = p, s.lo, true
	case !s.bracketed:
		s.before, s.lo = s.lo, p
	case p.d*(s.hi.t-s.lo.t) >= 0:
		s.lo, s.hi = p, s.lo
	default:
		s.lo = p
	}
	if s.tried >= maxSteps || s.bracketed && s.exhausted() {
		return fails
	}
	return searching
}

// exhausted reports whether no point within the bracket can be distinguished from its ends.
func (s *search) exhausted() bool {
	w := math.Abs(s.hi.t - s.lo.t)
	if w <= 1e-15*max(s.hi.t, s.lo.t) {
		return true
	}
	return s.lo.t == 0 && -s.d0*s.hi.t <= 1e-3*s.noise
}

// propose fills steps with the next steps to evaluate, in ascending order.
func (s *search) propose(steps []float64) {
	if s.bracketed {
		s.proposeWithin(steps)
		return
	}
	// Without a bracket, the next step is the minimum of the cubic, but at least 1.1 times and
	// at most ten times as long as the latest step.
	t := cubic(s.before, s.lo, s.noise)
	if !(t >= 1.1*s.lo.t) { // also if t is NaN
		t = 2 * s.lo.t
	}
	t = min(t, 10*s.lo.t)
	for i := range steps {
		steps[i] = min(t, s.limit)
		t *= 2
	}
}

// proposeWithin fills steps with steps inside the bracket.
func (s *search) proposeWithin(steps []float64) {
	lo, hi := s.lo.t, s.hi.t
	w := hi - lo
	if len(steps) == 1 {
		steps[0] = s.nextInside()
		s.olderWidth, s.width = s.width, math.Abs(w)
		return
	}
	for i := range steps {
		part := float64(i+1) / float64(len(steps)+1)
		if math.IsInf(s.hi.f, 1) { // φ is infinite at hi, so try steps of all magnitudes
			part = math.Pow10(-(len(steps) - i))
		}
		if w < 0 {
			part = float64(len(steps)-i) / float64(len(steps)+1)
		}
		steps[i] = lo + float64(part*w)
	}
	if step := s.nextInside(); !math.IsInf(s.hi.f, 1) {
		nearest := 0
		for i, t := range steps {
			if math.Abs(t-step) < math.Abs(steps[nearest]-step) {
				nearest = i
			}
		}
		steps[nearest] = step
	}
}

// nextInside returns the step inside the bracket that is evaluated next if one step is
// evaluated at a time.
func (s *search) nextInside() float64 {
	lo, hi := s.lo.t, s.hi.t
	w := hi - lo
	if math.IsInf(s.hi.f, 1) {
		if lo == 0 {
			return 0.1 * hi
		}
		return lo + float64(0.5*w)
	}
	t := cubic(s.lo, s.hi, s.noise)
	if !kernel.Finite(t) || math.Abs(w) > 0.66*s.olderWidth {
		return lo + float64(0.5*w)
	}
	from, to := lo+float64(0.1*w), hi-float64(0.1*w)
	return max(min(from, to), min(max(from, to), t))
}

// cubic returns the minimum of the cubic through two points with their slopes, or NaN if it has
// none. If the values differ by no more than noise, only the slopes are used.
func cubic(a, b point, noise float64) float64 {
	w := b.t - a.t
	if math.Abs(a.f-b.f) <= noise {
		return a.t - a.d*w/(b.d-a.d)
	}
	d1 := a.d + b.d - 3*(b.f-a.f)/w
	q := float64(d1*d1) - float64(a.d*b.d)
	if !(q >= 0) {
		return math.NaN()
	}
	d2 := math.Copysign(math.Sqrt(q), w)
	return b.t - float64(w*((b.d+d2-d1)/(b.d-a.d+float64(2*d2))))
}
