package grow

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// split is a way to split a node.
type split struct {
	found   bool
	feature int32 // number within the layout
	// place, for numbers, is the last bin that goes left; −1 means that only missing values do.
	// For categories it is the rank of the split in the order of trial.
	place       int32
	missingLeft bool
	categorical bool
	set         binSet  // the categories that go left; the split's own copy
	score       float64 // of both children
	left        []int64 // sums of the left child; the split's own copy
}

// better tells whether a split is chosen over another of the same node.
func (s *split) better(o *split) bool {
	switch {
	case s.found != o.found:
		return s.found
	case s.score != o.score:
		return s.score > o.score
	case s.feature != o.feature:
		return s.feature < o.feature
	case s.place != o.place:
		return s.place < o.place
	}
	return s.missingLeft && !o.missingLeft
}

// copyTo copies a split, with the sums and the set.
func (s *split) copyTo(o *split) {
	left, set := append(o.left[:0], s.left...), o.set[:0]
	if s.categorical {
		set = append(set, s.set...)
	}
	*o = *s
	o.left, o.set = left, set
}

// searcher finds the best split of a node by the features of one subtask.
type searcher struct {
	p      *Params
	layout *bins.Layout
	words  int // length of a bitset of bins
	scorer scorer
	node   []int64 // sums of the node
	rows   int64   // of the node
	// squares is the sum of g²/h of the node's rows, in units of the sums; used with
	// LearnCategories.
	squares float64
	worth   float64 // score of the node

	best       split
	sums       []int64 // of all bins of a feature with an implicit bin
	acc, other []int64 // of the left child and of the right one
	lefts      [2][]int64
	order      []int32 // categories
	keys       []float64
	soft       []float64 // shrunk gradients, see shrink
	soften     bool      // soft is used
}

func newSearcher(p *Params, l *bins.Layout) *searcher {
	return &searcher{p: p, layout: l, words: setWords(l)}
}

// begin starts the search for a node.
func (s *searcher) begin(sc scorer, node []int64) {
	s.scorer, s.node = sc, node
	s.worth = sc.score(node)
	s.best.found, s.best.feature = false, -1
	s.acc, s.other = kernel.Sized(s.acc, sc.width), kernel.Sized(s.other, sc.width)
	s.lefts[0], s.lefts[1] = kernel.Sized(s.lefts[0], sc.width), kernel.Sized(s.lefts[1], sc.width)
	s.best.left = kernel.Sized(s.best.left, sc.width)
}

// feature tries all splits by a feature. stored has the sums of its slots.
func (s *searcher) feature(number int32, stored []int64) {
	f := &s.layout.Features[number]
	if !f.Categorical && s.plain(number) {
		s.plainNumbers(f, number, stored)
		return
	}
	sums := s.bins(f, stored)
	switch {
	case f.Categorical && f.Bins <= s.p.maxOneHot():
		s.oneHot(f, number, sums)
	case f.Categorical:
		s.sorted(f, number, sums)
	default:
		s.numbers(f, number, sums)
	}
}

// plain tells whether scores are G²/(H+λ), without alpha, bounds, row counts or constraints.
func (s *searcher) plain(number int32) bool {
	return s.p.Alpha == 0 && s.p.MaxDeltaStep == 0 && s.scorer.width == 2 &&
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

// bins returns the sums of all bins of a feature; the bin of missing values is last.
func (s *searcher) bins(f *bins.Feature, stored []int64) []int64 {
	if f.Implicit < 0 {
		return stored
	}
	w := s.scorer.width
	s.sums = kernel.Sized(s.sums, (f.Bins+1)*w)
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

// offer makes a split, given the sums of its left child, the best if it is better than the best
// so far. It returns whether it did. For a split by categories the caller then sets the set.
func (s *searcher) offer(left []int64, candidate split) bool {
	for k, v := range s.node {
		s.other[k] = v - left[k]
	}
	return s.take(left, float64(left[0]), float64(s.other[0]), candidate)
}

// take is offer with given gradients gl and gr of the children; s.other has the sums of the
// right child.
func (s *searcher) take(left []int64, gl, gr float64, candidate split) bool {
	score, ok := s.scorer.pair(left, s.other, gl, gr)
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
	candidate.left, candidate.set = append(s.best.left[:0], left...), s.best.set
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

// numbers tries all thresholds, and the split of missing values from all others.
func (s *searcher) numbers(f *bins.Feature, number int32, sums []int64) {
	w := s.scorer.width
	missing := sums[f.Bins*w:][:w]
	some := !zero(missing)
	s.scorer.direction = s.directionOf(number)
	candidate := split{feature: number, place: -1, missingLeft: true}
	if some {
		s.offer(missing, candidate)
	}
	clear(s.acc)
	for b := range max(f.Bins-1, 0) {
		bin := sums[b*w:][:w]
		if zero(bin) {
			continue // the threshold before it is as good, and lower
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

// plainNumbers is numbers for plain scores. It reads the stored sums and gives the same bits.
func (s *searcher) plainNumbers(f *bins.Feature, number int32, stored []int64) {
	p := plainSums{implicit: f.Implicit, stored: stored}
	if p.implicit >= 0 {
		g, h, some := kernel.SumPairs(stored)
		if !some {
			return // all rows are in that bin
		}
		p.rest = [2]int64{s.node[0] - g, s.node[1] - h}
	}
	missing := p.rest
	if p.implicit != f.Bins {
		missing = [2]int64(stored[len(stored)-2:])
	}
	t := kernel.Thresholds{
		AllG: s.node[0], AllH: s.node[1], UnitG: s.scorer.unit.g, UnitH: s.scorer.unit.h,
		Lambda: s.scorer.lambda, Least: s.p.MinChildWeight, Score: math.Inf(-1), Place: -2,
	}
	if b := &s.best; b.found && b.feature < number {
		t.Score = b.score // a tie is not better
	}
	// Missing values go left in the first scan and, if there are any, right in the second. So
	// on a tie of the same threshold, left wins.
	right := t
	if missing != [2]int64{} {
		t.Add(missing[0], missing[1], -1)
	}
	p.scan(&t, f.Bins-1)
	missingLeft := true
	if missing != [2]int64{} {
		p.scan(&right, f.Bins-1)
		if right.Place >= -1 && (right.Score > t.Score || right.Score == t.Score && right.Place < t.Place) {
			t, missingLeft = right, false
		}
	}
	if t.Place < -1 {
		return
	}
	if _, enough := s.p.gain(t.Score, s.worth); !enough {
		return
	}
	candidate := split{found: true, feature: number, place: int32(t.Place), missingLeft: missingLeft, score: t.Score}
	if !candidate.better(&s.best) {
		return
	}
	g, h := p.upTo(t.Place)
	if missingLeft {
		g, h = g+missing[0], h+missing[1]
	}
	candidate.left, candidate.set = append(s.best.left[:0], g, h), s.best.set
	s.best = candidate
}

// plainSums has the sums of the bins of a feature, as pairs.
type plainSums struct {
	implicit int // the bin that is not stored, −1 for none
	stored   []int64
	rest     [2]int64 // of the implicit bin
}

// scan tries the thresholds after each of the first n bins.
func (p *plainSums) scan(t *kernel.Thresholds, n int) {
	n = max(n, 0) // there is no threshold after the last bin
	if p.implicit < 0 || p.implicit >= n {
		t.Scan(p.stored[:2*n], 0)
		return
	}
	t.Scan(p.stored[:2*p.implicit], 0)
	t.Add(p.rest[0], p.rest[1], p.implicit)
	t.Scan(p.stored[2*p.implicit:2*(n-1)], p.implicit+1)
}

// upTo returns the sums of the bins up to one.
func (p *plainSums) upTo(bin int) (g, h int64) {
	if p.implicit < 0 || bin < p.implicit {
		g, h, _ = kernel.SumPairs(p.stored[:2*(bin+1)])
		return g, h
	}
	g, h, _ = kernel.SumPairs(p.stored[:2*bin])
	return g + p.rest[0], h + p.rest[1]
}
