package grow

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// split describes a split of a node.
type split struct {
	found   bool
	feature int32 // index in Layout.Features
	// For a numeric feature, place is the last bin that goes left, or −1 if only missing values
	// go left. For categories, place is the position of the split in the order in which splits
	// are tried.
	place       int32
	missingLeft bool
	categorical bool
	set         binSet  // the categories that go left; owned by the split
	score       float64 // sum of the children's scores
	left        []int64 // sums of the left child; owned by the split
}

// better reports whether s is chosen over o, another split of the same node.
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

// copyTo copies s to o, with separate copies of the sums and the set.
func (s *split) copyTo(o *split) {
	left, set := append(o.left[:0], s.left...), o.set[:0]
	if s.categorical {
		set = append(set, s.set...)
	}
	*o = *s
	o.left, o.set = left, set
}

// searcher finds the best split of a node among the features that the subtask owns.
type searcher struct {
	p      *Params
	layout *bins.Layout
	words  int // number of words of a bitset of bins
	scorer scorer
	node   []int64 // sums of the node
	rows   int64   // number of rows of the node
	// squares is the sum of g²/h of the node's rows, in the units of the integers; it is used
	// with LearnCategories.
	squares float64
	worth   float64 // score of the node

	best       split
	sums       []int64 // buffer: sums of all bins of a feature with an implicit bin
	acc, other []int64 // buffers: sums of the left child and of the right child
	lefts      [2][]int64
	order      []int32 // buffer: categories in sorted order
	keys       []float64
	soft       []float64 // buffer: shrunk gradients, see shrink
	soften     bool      // whether soft replaces the gradients
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

// feature tries all splits by the feature with the index number in the layout. stored has the
// sums of the feature's slots.
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

// plain reports whether scores of splits by a feature are G²/(H+λ), without Alpha,
// MaxDeltaStep, row counts or constraints.
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

// bins returns the sums of all bins of a feature, including the implicit bin. The bin of
// missing values is last. stored has the sums of the slots.
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

// offer sets s.best to candidate if candidate is better than the best split so far, and reports
// whether candidate is better. left has the sums of the left child. For a split by categories,
// the caller must then set s.best.set.
func (s *searcher) offer(left []int64, candidate split) bool {
	for k, v := range s.node {
		s.other[k] = v - left[k]
	}
	return s.take(left, float64(left[0]), float64(s.other[0]), candidate)
}

// take does what offer does, with gl and gr instead of the sums of the children's gradients.
// s.other must have the sums of the right child.
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

// plus sets out to a + b, element by element, and returns it.
func plus(out, a, b []int64) []int64 {
	out, b = out[:len(a)], b[:len(a)]
	for k, v := range a {
		out[k] = v + b[k]
	}
	return out
}

// numbers tries all thresholds of a numeric feature, and the split that sends only missing
// values left.
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
			continue // a threshold after an empty bin gives the same split as the threshold before it
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

// plainNumbers does what numbers does, for plain scores. It reads the sums of the slots
// directly, and its results are bit-identical.
func (s *searcher) plainNumbers(f *bins.Feature, number int32, stored []int64) {
	p := plainSums{implicit: f.Implicit, stored: stored}
	if p.implicit >= 0 {
		g, h, some := kernel.SumPairs(stored)
		if !some {
			return // all rows are in the implicit bin
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
		t.Score = b.score // a split must exceed this score, so an equal score is not better
	}
	// Missing values go left in the first scan. If there are missing values, they go right in a
	// second scan. So if a threshold has the same score in both scans, missing values go left.
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

// plainSums has the sums of the bins of a feature, as pairs of gradient and hessian.
type plainSums struct {
	implicit int // the bin that is not stored; −1 if every bin is stored
	stored   []int64
	rest     [2]int64 // sums of the implicit bin
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

// upTo returns the sums over the bins 0 to bin.
func (p *plainSums) upTo(bin int) (g, h int64) {
	if p.implicit < 0 || bin < p.implicit {
		g, h, _ = kernel.SumPairs(p.stored[:2*(bin+1)])
		return g, h
	}
	g, h, _ = kernel.SumPairs(p.stored[:2*bin])
	return g + p.rest[0], h + p.rest[1]
}
