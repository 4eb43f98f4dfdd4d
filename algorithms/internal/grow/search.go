package grow

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// split is a way to split a node.
type split struct {
	found bool
	// order is 0 for features that the node looks at, else the place among the others.
	order   int32
	feature int32 // number within the layout
	// place is the bin of numbers up to which rows go left, −1 where only missing values do;
	// of categories the place in the order they were tried in.
	place       int32
	missingLeft bool
	categorical bool
	set         [4]uint64 // bins of categories that go left
	score       float64   // of both children
	left        []int64   // sums of the left child; the split's own
}

// better tells whether a split comes before another of the same node.
func (s *split) better(o *split) bool {
	switch {
	case s.found != o.found:
		return s.found
	case s.order != o.order:
		return s.order < o.order
	case s.score != o.score:
		return s.score > o.score
	case s.feature != o.feature:
		return s.feature < o.feature
	case s.place != o.place:
		return s.place < o.place
	}
	return s.missingLeft && !o.missingLeft
}

// copyTo copies a split, with the sums.
func (s *split) copyTo(o *split) {
	left := append(o.left[:0], s.left...)
	*o = *s
	o.left = left
}

// searcher finds best splits of nodes, of the features of one subtask.
type searcher struct {
	p      *Params
	layout *bins.Layout
	scorer scorer
	node   []int64 // sums of the node
	worth  float64 // score of the node

	best       split
	sums       []int64 // of all bins of a feature, where one is not stored
	acc, other []int64 // of the left child, of the right one
	lefts      [2][]int64
	order      []int32 // categories
	keys       []float64
}

func newSearcher(p *Params, l *bins.Layout) *searcher { return &searcher{p: p, layout: l} }

// begin starts the search for a node.
func (s *searcher) begin(sc scorer, node []int64) {
	s.scorer, s.node = sc, node
	s.worth = sc.score(node)
	s.best.found, s.best.feature = false, -1
	s.acc, s.other = sized(s.acc, sc.width), sized(s.other, sc.width)
	s.lefts[0], s.lefts[1] = sized(s.lefts[0], sc.width), sized(s.lefts[1], sc.width)
	s.best.left = sized(s.best.left, sc.width)
}

// feature looks at all splits by a feature. stored are the sums of its slots; random, where
// thresholds are drawn, is the draw.
func (s *searcher) feature(number int32, stored []int64, order int32, random uint64) {
	f := &s.layout.Features[number]
	if !f.Categorical && !s.p.RandomThresholds && s.plain(number) {
		s.plainNumbers(f, number, stored, order)
		return
	}
	sums := s.bins(f, stored)
	switch {
	case f.Categorical && f.Bins <= s.p.maxOneHot():
		s.oneHot(f, number, sums, order)
	case f.Categorical:
		s.sorted(f, number, sums, order)
	case s.p.RandomThresholds:
		s.randomThreshold(f, number, sums, order, random)
	default:
		s.numbers(f, number, sums, order)
	}
}

// plain tells whether the score is G²/(H+λ) and no constraint is set.
func (s *searcher) plain(number int32) bool {
	return s.p.Criterion == Newton && s.p.Alpha == 0 && s.p.MaxDeltaStep == 0 && s.scorer.width == 2 &&
		math.IsInf(s.scorer.lo, -1) && math.IsInf(s.scorer.hi, 1) && s.directionOf(number) == 0
}

func (s *searcher) directionOf(number int32) int8 {
	if s.p.Monotone == nil {
		return 0
	}
	return s.p.Monotone[s.layout.Features[number].Number]
}

func (p *Params) maxOneHot() int {
	if p.MaxOneHot == 0 {
		return 4
	}
	return p.MaxOneHot
}

// bins returns the sums of all bins of a feature, that of missing values last.
func (s *searcher) bins(f *bins.Feature, stored []int64) []int64 {
	if f.Implicit < 0 {
		return stored
	}
	w := s.scorer.width
	s.sums = sized(s.sums, (f.Bins+1)*w)
	at := f.Implicit * w
	copy(s.sums[:at], stored[:at])
	copy(s.sums[at+w:], stored[at:])
	rest := s.sums[at : at+w]
	copy(rest, s.node)
	for i := 0; i < len(stored); i += w {
		for k := range rest {
			rest[k] -= stored[i+k]
		}
	}
	return s.sums
}

func zero(v []int64) bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

// offer takes a split with the sums of its left child if it is better than what there is.
func (s *searcher) offer(left []int64, candidate split) bool {
	for k, v := range s.node {
		s.other[k] = v - left[k]
	}
	score, ok := s.scorer.pair(left, s.other)
	if !ok {
		return false
	}
	if _, enough := s.p.gain(score, s.worth); !enough {
		return false
	}
	candidate.found, candidate.score = true, score
	if !candidate.better(&s.best) {
		return false
	}
	candidate.left = append(s.best.left[:0], left...)
	s.best = candidate
	return true
}

// plus sets out to the sums a + b.
func plus(out, a, b []int64) []int64 {
	out, b = out[:len(a)], b[:len(a)]
	for k, v := range a {
		out[k] = v + b[k]
	}
	return out
}

// numbers tries all thresholds, and missing values alone.
func (s *searcher) numbers(f *bins.Feature, number int32, sums []int64, order int32) {
	w := s.scorer.width
	missing := sums[f.Bins*w:][:w]
	some := !zero(missing)
	s.scorer.direction = s.directionOf(number)
	candidate := split{order: order, feature: number, place: -1, missingLeft: true}
	if some {
		s.offer(missing, candidate)
	}
	clear(s.acc)
	for b := range max(f.Bins-1, 0) {
		bin := sums[b*w:][:w]
		if zero(bin) {
			continue // the threshold before is as good, and lower
		}
		plus(s.acc, s.acc, bin)
		candidate.place, candidate.missingLeft = int32(b), true
		s.offer(plus(s.lefts[0], s.acc, missing), candidate)
		if some {
			candidate.missingLeft = false
			s.offer(s.acc, candidate)
		}
	}
	s.scorer.direction = 0
}

// plainNumbers is numbers for plain scores, with the same bits, over the stored sums.
func (s *searcher) plainNumbers(f *bins.Feature, number int32, stored []int64, order int32) {
	var rest [2]int64 // of the bin that is not stored
	implicit := f.Implicit
	if implicit >= 0 {
		var some bool
		if rest, some = restOf(s.node, stored); !some {
			return // all rows are in that bin
		}
	}
	missing := [2]int64{rest[0], rest[1]}
	if implicit != f.Bins {
		missing = [2]int64(stored[len(stored)-2:])
	}
	t := sweep{
		all: [2]int64(s.node), missing: missing, unit: s.scorer.unit, lambda: s.scorer.lambda, least: s.p.MinChildWeight,
		some: missing[0]|missing[1] != 0, score: math.Inf(-1), place: -2,
	}
	if t.some {
		t.try(0, 0, -1, true)
	}
	last := f.Bins - 1 // no threshold is behind the last bin
	switch {
	case implicit < 0 || implicit >= last:
		t.scan(stored[:2*max(last, 0)], 0)
	default:
		t.scan(stored[:2*implicit], 0)
		t.scan(rest[:], implicit)
		t.scan(stored[2*implicit:2*(last-1)], implicit+1)
	}
	if t.place < -1 {
		return
	}
	if _, enough := s.p.gain(t.score, s.worth); !enough {
		return
	}
	candidate := split{found: true, order: order, feature: number, place: t.place, missingLeft: t.missingLeft, score: t.score}
	if !candidate.better(&s.best) {
		return
	}
	candidate.left = append(s.best.left[:0], t.left[0], t.left[1])
	s.best = candidate
}

// restOf returns the pair all minus the stored ones, and whether any of these is not zero.
func restOf(all, stored []int64) (rest [2]int64, some bool) {
	g, h, any := all[0], all[1], int64(0)
	for ; len(stored) >= 4; stored = stored[4:] {
		a, b, c, d := stored[0], stored[1], stored[2], stored[3]
		g -= a + c
		h -= b + d
		any |= a | b | c | d
	}
	if len(stored) == 2 {
		g -= stored[0]
		h -= stored[1]
		any |= stored[0] | stored[1]
	}
	return [2]int64{g, h}, any != 0
}

// sweep goes over the thresholds of a feature.
type sweep struct {
	all, missing  [2]int64
	some          bool // values are missing in some row
	unit          scale
	lambda, least float64
	g, h          int64 // of the bins so far

	score       float64 // the best
	place       int32
	missingLeft bool
	left        [2]int64
}

// scan tries thresholds behind bins, of which first is the number of the first.
func (t *sweep) scan(sums []int64, first int) {
	for i := 0; i+1 < len(sums); i += 2 {
		bg, bh := sums[i], sums[i+1]
		if bg|bh == 0 {
			continue // the threshold before is as good, and lower
		}
		t.g, t.h = t.g+bg, t.h+bh
		place := int32(first + i/2)
		t.try(t.g, t.h, place, true)
		if t.some {
			t.try(t.g, t.h, place, false)
		}
	}
}

// try scores a threshold with g and h below it.
func (t *sweep) try(g, h int64, place int32, missingLeft bool) {
	if missingLeft {
		g, h = g+t.missing[0], h+t.missing[1]
	}
	rg, rh := t.all[0]-g, t.all[1]-h
	hl, hr := float64(float64(h)*t.unit.h), float64(float64(rh)*t.unit.h)
	if hl < t.least || hr < t.least || !(hl+t.lambda > 0) || !(hr+t.lambda > 0) || g|h == 0 || rg|rh == 0 {
		return
	}
	gl, gr := float64(float64(g)*t.unit.g), float64(float64(rg)*t.unit.g)
	if score := float64(gl*gl)/(hl+t.lambda) + float64(gr*gr)/(hr+t.lambda); score > t.score {
		t.score, t.place, t.missingLeft, t.left = score, place, missingLeft, [2]int64{g, h}
	}
}

// randomThreshold draws one of the thresholds between the lowest and the highest bin that
// has rows of the node.
func (s *searcher) randomThreshold(f *bins.Feature, number int32, sums []int64, order int32, random uint64) {
	w := s.scorer.width
	lo, hi := -1, -1
	for b := range f.Bins {
		if !zero(sums[b*w:][:w]) {
			hi = b
			if lo < 0 {
				lo = b
			}
		}
	}
	if lo < 0 || hi == lo {
		return
	}
	b := lo + int(random%uint64(hi-lo))
	missing := sums[f.Bins*w:][:w]
	clear(s.acc)
	for i := range b + 1 {
		plus(s.acc, s.acc, sums[i*w:][:w])
	}
	s.scorer.direction = s.directionOf(number)
	candidate := split{order: order, feature: number, place: int32(b), missingLeft: true}
	s.offer(plus(s.lefts[0], s.acc, missing), candidate)
	if !zero(missing) {
		candidate.missingLeft = false
		s.offer(s.acc, candidate)
	}
	s.scorer.direction = 0
}
