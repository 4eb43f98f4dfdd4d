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
	sums := s.bins(f, stored)
	switch {
	case f.Categorical && f.Bins <= s.p.maxOneHot():
		s.oneHot(f, number, sums, order)
	case f.Categorical:
		s.sorted(f, number, sums, order)
	case s.p.RandomThresholds:
		s.randomThreshold(f, number, sums, order, random)
	case s.plain(number):
		s.plainNumbers(f, number, sums, order)
	default:
		s.numbers(f, number, sums, order, 0, f.Bins-1)
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

// numbers tries thresholds behind the bins lo to hi-1, and missing values alone where lo is 0.
func (s *searcher) numbers(f *bins.Feature, number int32, sums []int64, order int32, lo, hi int) {
	w := s.scorer.width
	missing := sums[f.Bins*w:][:w]
	some := !zero(missing)
	s.scorer.direction = s.directionOf(number)
	candidate := split{order: order, feature: number, place: -1, missingLeft: true}
	if some && lo == 0 {
		s.offer(missing, candidate)
	}
	clear(s.acc)
	for b := range hi {
		bin := sums[b*w:][:w]
		if zero(bin) && b > lo || b < lo {
			plus(s.acc, s.acc, bin)
			continue
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

// plainNumbers is numbers for plain scores, with the same bits.
func (s *searcher) plainNumbers(f *bins.Feature, number int32, sums []int64, order int32) {
	n := f.Bins
	sums = sums[:2*n+2]
	missG, missH := sums[2*n], sums[2*n+1]
	some := missG != 0 || missH != 0
	allG, allH := s.node[0], s.node[1]
	unitG, unitH, lambda := s.scorer.unit.g, s.scorer.unit.h, s.scorer.lambda
	least := s.p.MinChildWeight
	top, place, way, topG, topH := math.Inf(-1), int32(-2), false, int64(0), int64(0)
	try := func(g, h int64, at int32, missingLeft bool) {
		rg, rh := allG-g, allH-h
		hl, hr := float64(h)*unitH, float64(rh)*unitH
		if hl < least || hr < least || !(hl+lambda > 0) || !(hr+lambda > 0) || g|h == 0 || rg|rh == 0 {
			return
		}
		gl, gr := float64(g)*unitG, float64(rg)*unitG
		if score := float64(gl*gl)/(hl+lambda) + float64(gr*gr)/(hr+lambda); score > top {
			top, place, way, topG, topH = score, at, missingLeft, g, h
		}
	}
	if some {
		try(missG, missH, -1, true)
	}
	var g, h int64
	for b := range max(n-1, 0) {
		bg, bh := sums[2*b], sums[2*b+1]
		if bg|bh == 0 && b > 0 {
			continue
		}
		g, h = g+bg, h+bh
		try(g+missG, h+missH, int32(b), true)
		if some {
			try(g, h, int32(b), false)
		}
	}
	if place < -1 {
		return
	}
	if _, enough := s.p.gain(top, s.worth); !enough {
		return
	}
	candidate := split{found: true, order: order, feature: number, place: place, missingLeft: way, score: top}
	if !candidate.better(&s.best) {
		return
	}
	candidate.left = append(s.best.left[:0], topG, topH)
	s.best = candidate
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
