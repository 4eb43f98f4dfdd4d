package grow

import "math"

// scorer computes scores and values from the sums of a node. A sum has width words: gradient,
// hessian and, if rows are counted, the number of rows.
type scorer struct {
	p     *Params
	unit  scale
	width int
	// lo and hi are the bounds of the children's values under monotone constraints. direction
	// is the monotone constraint of the feature. lambda is Params.Lambda, plus CategoryLambda
	// for splits of sorted categories.
	lo, hi    float64
	direction int8
	lambda    float64
}

func newScorer(p *Params, unit scale, width int) scorer {
	return scorer{p: p, unit: unit, width: width, lambda: p.Lambda, lo: math.Inf(-1), hi: math.Inf(1)}
}

// weight returns the sum of hessians in v.
func (s *scorer) weight(v []int64) float64 { return float64(float64(v[1]) * s.unit.h) }

func total(v []int64) (sum int64) {
	for _, c := range v {
		sum += c
	}
	return sum
}

// score returns the score of a node with the sums v. The score is twice the reduction of the
// penalised loss when the predictions for the node's rows change from 0 to the node's value.
func (s *scorer) score(v []int64) float64 {
	g, h := float64(float64(v[0])*s.unit.g), float64(float64(v[1])*s.unit.h)
	return s.newton(g, h, s.value(g, h))
}

// threshold is soft thresholding: it returns g with its absolute value reduced by alpha, but
// not below 0.
func threshold(g, alpha float64) float64 {
	switch {
	case g > alpha:
		return g - alpha
	case g < -alpha:
		return g + alpha
	}
	return 0
}

// value returns the value of a leaf with gradient sum g and hessian sum h: the w within the
// bounds that minimises g·w + (h+λ)w²/2 + α|w|.
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

// newton returns −2(g·w + (h+λ)w²/2 + α|w|). At the w that minimises g·w + (h+λ)w²/2 + α|w|
// without bounds, this is T²/(h+λ), where T is threshold(g, α).
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

// child reports whether a child with the sums v is allowed. It must have at least MinRows rows
// and a sum of hessians of at least MinChildWeight. Its gradient and its hessian must not both
// be 0, and its sum of hessians plus λ must be positive.
func (s *scorer) child(v []int64) bool {
	if s.width > 2 && v[2] < int64(s.p.minRows()) {
		return false
	}
	h := s.weight(v)
	return (v[0] != 0 || v[1] != 0) && h >= s.p.MinChildWeight && h+s.lambda > 0
}

// pair returns the sum of the scores of two children with the sums left and right. gl and gr
// replace the gradients in these sums. pair returns false if a constraint forbids the split.
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

// minRows returns the least number of rows in a child.
func (p *Params) minRows() int { return max(p.MinRows, 1) }

// gain returns the gain of a split. children is the sum of the children's scores, and node is
// the score of the node. The second result reports whether the gain is large enough: at least
// Gamma, and larger than rounding errors.
func (p *Params) gain(children, node float64) (float64, bool) {
	g := children - node
	return g, g >= p.Gamma && g > max(math.Abs(children), math.Abs(node))*0x1p-40
}
