package grow

import "math"

// scorer values the sums of a node. Sums are width integers: gradient, hessian and, where rows
// are counted, their number.
type scorer struct {
	p     *Params
	unit  scale
	width int
	// The bounds that monotone constraints set to the values of the node's children, the
	// direction of the feature, and what is added to lambda.
	lo, hi    float64
	direction int8
	lambda    float64
}

func newScorer(p *Params, unit scale, width int) scorer {
	return scorer{p: p, unit: unit, width: width, lambda: p.Lambda, lo: math.Inf(-1), hi: math.Inf(1)}
}

// weight is the sum of hessians.
func (s *scorer) weight(v []int64) float64 { return float64(float64(v[1]) * s.unit.h) }

func total(v []int64) (sum int64) {
	for _, c := range v {
		sum += c
	}
	return sum
}

// score is what a node is worth: twice the loss that its value saves.
func (s *scorer) score(v []int64) float64 {
	g, h := float64(float64(v[0])*s.unit.g), float64(float64(v[1])*s.unit.h)
	return s.newton(g, h, s.value(g, h))
}

// threshold takes alpha off the absolute value of a gradient.
func threshold(g, alpha float64) float64 {
	switch {
	case g > alpha:
		return g - alpha
	case g < -alpha:
		return g + alpha
	}
	return 0
}

// value is that of a leaf with sums g and h: the minimum of g·w + (h+λ)w²/2 + α|w| within
// the bounds.
func (s *scorer) value(g, h float64) float64 {
	h += s.lambda
	if !(h > 0) {
		return min(max(0, s.lo), s.hi)
	}
	w := -threshold(g, s.p.Alpha) / h
	if d := s.p.MaxDeltaStep; d > 0 {
		w = min(max(w, -d), d)
	}
	return min(max(w, s.lo), s.hi)
}

// newton is −2(g·w + (h+λ)w²/2 + α|w|): at the unbounded minimum T²/(h+λ).
func (s *scorer) newton(g, h, w float64) float64 {
	h += s.lambda
	if !(h > 0) {
		return 0
	}
	t := threshold(g, s.p.Alpha)
	if best := -t / h; w == best {
		return float64(t*t) / h
	}
	return -(float64(2*float64(g*w)) + float64(float64(h*w)*w) + float64(2*float64(s.p.Alpha*math.Abs(w))))
}

// child tells whether a node with these sums may be a child.
func (s *scorer) child(v []int64) bool {
	if s.width > 2 && v[2] < int64(s.p.minRows()) {
		return false
	}
	h := s.weight(v)
	return (v[0] != 0 || v[1] != 0) && h >= s.p.MinChildWeight && h+s.lambda > 0
}

// pair values a split into two children: the sum of their scores, with these gradients. It is
// false where constraints forbid it.
func (s *scorer) pair(left, right []int64, gl, gr float64) (float64, bool) {
	if !s.child(left) || !s.child(right) {
		return 0, false
	}
	gl, hl := float64(gl*s.unit.g), float64(float64(left[1])*s.unit.h)
	gr, hr := float64(gr*s.unit.g), float64(float64(right[1])*s.unit.h)
	wl, wr := s.value(gl, hl), s.value(gr, hr)
	if s.direction > 0 && wl > wr || s.direction < 0 && wl < wr {
		return 0, false
	}
	return s.newton(gl, hl, wl) + s.newton(gr, hr, wr), true
}

// minRows is the least number of rows in a child.
func (p *Params) minRows() int { return max(p.MinRows, 1) }

// gain tells what a split into children of these scores wins over its node, and whether
// that is enough: Gamma or more, and more than rounding can make of nothing.
func (p *Params) gain(children, node float64) (float64, bool) {
	g := children - node
	return g, g >= p.Gamma && g > max(math.Abs(children), math.Abs(node))*0x1p-40
}
