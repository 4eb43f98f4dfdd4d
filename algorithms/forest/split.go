package forest

import (
	"cmp"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// rules has the rules by which trees are grown.
type rules struct {
	criterion         Criterion
	random            bool // try one random split of a feature, not all splits
	ordered           bool // of equally good splits, take the split by the lowest feature number, not by the feature drawn first
	tried             int  // number of features tried at a node
	depth, leaves     int  // depth is the largest number of splits above a leaf; leaves is the largest number of leaves, 0 for no limit
	minLeaf, minSplit int
	minGain           float64
	seed              uint64
}

// split describes which rows of a node go to which child.
type split struct {
	feature int     // index in Layout.Features
	col     int     // index of the feature's column in the table
	score   float64 // sum of the scores of both children
	gain    float64 // reduction of the criterion, summed over weighted rows
	// pos is the last bin that goes left, or −1 if only missing values go left. next is the
	// next bin that occurs, or 0 if the threshold is the cut directly after pos. For a
	// categorical feature set has the bins that go left.
	pos, next   int
	set         [4]uint64
	categorical bool
	missingLeft bool
	left        sums
	// wide replaces set for a feature whose bins take two bytes. It has the bins that go to the
	// side opposite to missing values. So bins that do not occur in the node go to the side of
	// missing values.
	wide []uint64
}

// goes reports whether a bin of a categorical feature goes left. bin must not be the bin of
// missing values.
func (s *split) goes(bin int) bool {
	if s.wide != nil {
		return (s.wide[bin>>6]>>(bin&63)&1 != 0) != s.missingLeft
	}
	return s.set[bin>>6]>>(bin&63)&1 != 0
}

// These are the numbers of the draws of a node. Draws of features begin at 0; the other draws
// begin at the numbers below, plus the number of the feature.
const (
	drawThreshold = 1 << 32
	drawMissing   = 2 << 32
	drawCategory  = 3 << 32 // 256 draws for each feature
	drawWide      = 1 << 62 // 65,536 draws for each feature whose bins take two bytes
)

// finder finds the split of a node. It belongs to one goroutine.
type finder struct {
	t     *table
	rules rules
	scorer
	histogram
	order   []int32 // columns; drawn columns are moved to the front
	swapped []int32
	left    []int64 // weights of the classes on the left side
	kept    []int64 // if keeping is set, the left weights of the best split
	keeping bool
	sorted  []present
	keys    []float64
	wide    []uint64 // the bins of the best split; finish copies them
	draws   nodeDraws
	best    split
	found   bool
}

func newFinder(t *table, r rules) *finder {
	f := &finder{t: t, rules: r, scorer: newScorer(r.criterion, t), order: make([]int32, len(t.cols))}
	f.countRows, f.bins = r.minLeaf > 1, 256
	for i := range t.cols {
		f.bins = max(f.bins, t.cols[i].missing+1)
	}
	f.keys = make([]float64, f.bins)
	for i := range f.order {
		f.order[i] = int32(i)
	}
	return f
}

// find looks for the best split of a node among the features that are drawn for it. If none of
// them can split it, further features are drawn until one can or no feature is left. The
// histogram must have been opened for the node.
func (f *finder) find(e []entry, total sums, draws nodeDraws) (split, bool) {
	f.draws, f.found = draws, false
	f.swapped = f.swapped[:0]
	for i := range f.order {
		if i >= f.rules.tried && f.found {
			break
		}
		j := i + draws.below(uint64(i), len(f.order)-i)
		f.order[i], f.order[j] = f.order[j], f.order[i]
		f.swapped = append(f.swapped, int32(j))
		f.findByFeature(int(f.order[i]), e, total)
	}
	for i := len(f.swapped) - 1; i >= 0; i-- {
		j := f.swapped[i]
		f.order[i], f.order[j] = f.order[j], f.order[i]
	}
	return f.finish(total)
}

// finish returns the best split that was found, with its gain.
func (f *finder) finish(total sums) (split, bool) {
	if !f.found {
		return split{}, false
	}
	parent := 0.0
	if f.several() {
		parent = f.scorer.counts(f.total, total.w)
	} else {
		parent = f.pair(total.g, total.w)
	}
	f.best.wide = slices.Clone(f.best.wide)
	f.best.gain = max(0, min(float64((f.best.score-parent)*f.unit), math.MaxFloat64))
	return f.best, true
}

// drawn appends to dst the columns that a node tries, in the order in which they are drawn. The
// first draw has the number in from, and the last has the number before to.
func (f *finder) drawn(draws nodeDraws, from, to int, dst []int32) []int32 {
	f.swapped = f.swapped[:0]
	for i := range to {
		j := i + draws.below(uint64(i), len(f.order)-i)
		f.order[i], f.order[j] = f.order[j], f.order[i]
		f.swapped = append(f.swapped, int32(j))
	}
	dst = append(dst, f.order[from:to]...)
	for i := to - 1; i >= 0; i-- {
		j := f.swapped[i]
		f.order[i], f.order[j] = f.order[j], f.order[i]
	}
	return dst
}

// several reports whether there are more than two classes.
func (f *finder) several() bool { return f.t.classes > 2 }

// findByFeature tries the splits of a node by the feature in column col.
func (f *finder) findByFeature(col int, e []entry, total sums) {
	c := &f.t.cols[col]
	f.fill(c, e)
	f.trySplits(col, total)
	f.clear(c.missing)
}

// trySplits tries the splits by the feature in column col. The list of bins in the histogram must
// have been set before.
func (f *finder) trySplits(col int, total sums) {
	if len(f.list) == 0 || len(f.list) == 1 && f.absent.w == 0 {
		return
	}
	number := f.t.cols[col].feature
	if f.t.cols[col].wide != nil && total.n*categoriesOfRow < f.t.cols[col].missing {
		return
	}
	feature := &f.t.layout.Features[number]
	s := search{f: f, total: total, cand: split{feature: number, col: col, categorical: feature.Categorical}, wide: f.t.cols[col].wide != nil}
	s.begin()
	switch {
	case feature.Categorical && f.rules.random:
		s.randomSet()
	case feature.Categorical:
		s.sets()
	case f.rules.random:
		s.randomCut(feature)
	default:
		s.cuts()
	}
}

// search tries the splits of a node by one feature.
type search struct {
	f       *finder
	total   sums
	cand    split
	left    sums // sums of the bins on the left
	several bool
	wide    bool // whether bins take two bytes
}

// begin prepares the search with all bins on the right.
func (s *search) begin() {
	s.left = sums{}
	if s.several = s.f.several(); s.several {
		s.f.left = append(s.f.left[:0], s.f.total...)
		clear(s.f.left)
	}
}

// move moves a bin, which may be the bin of missing values, to the left.
func (s *search) move(bin int, p sums) {
	s.left = s.left.plus(p)
	if s.several {
		for k, c := range s.f.bin(bin) {
			s.f.left[k] += c
		}
	}
}

// back moves the bin of missing values back to the right.
func (s *search) back(bin int, p sums) {
	s.left = s.left.minus(p)
	if s.several {
		for k, c := range s.f.bin(bin) {
			s.f.left[k] -= c
		}
	}
}

// try makes the candidate, with the bins now on the left, the best split if it is better than
// the best so far. It reports whether it did so. Of equally good candidates the first is kept,
// so that features with the same information share their importance; in nodes of few rows many
// features have the same information. In a single tree the candidate of the feature with the
// lower number is kept.
func (s *search) try() bool {
	f := s.f
	right := s.total.minus(s.left)
	if s.left.w <= 0 || right.w <= 0 || f.countRows && min(s.left.n, right.n) < f.rules.minLeaf {
		return false
	}
	if s.several {
		s.cand.score = f.scorer.counts(f.left, s.left.w) + f.rest(f.total, f.left, right.w)
	} else {
		s.cand.score = f.pair(s.left.g, s.left.w) + f.pair(right.g, right.w)
	}
	switch {
	case math.IsInf(s.cand.score, -1):
		return false
	case f.found && s.cand.score < f.best.score:
		return false
	case f.found && s.cand.score == f.best.score && !(f.rules.ordered && s.cand.feature < f.best.feature):
		return false
	}
	s.cand.left = s.left
	f.best, f.found = s.cand, true
	if f.keeping && s.several {
		f.kept = append(f.kept[:0], f.left...)
	}
	return true
}

// setWide sets wide for the best split, which was just found. left has the bins of the node
// that go left.
func (s *search) setWide(left []present) {
	f := s.f
	f.wide = append(f.wide[:0], make([]uint64, (f.t.cols[s.cand.col].missing+63)/64)...)
	if f.best.missingLeft {
		for _, p := range f.list {
			f.wide[p.bin>>6] |= 1 << (p.bin & 63)
		}
	}
	for _, p := range left {
		f.wide[p.bin>>6] ^= 1 << (p.bin & 63)
	}
	f.best.wide = f.wide
}

// cuts tries every threshold between the bins of a node, each with missing values on the left
// and on the right. It also tries the split that separates missing values from all other
// values.
func (s *search) cuts() {
	f := s.f
	missing := f.t.cols[s.cand.col].missing
	there := f.absent.w > 0
	if there {
		s.cand.pos, s.cand.missingLeft = -1, true
		s.move(missing, f.absent)
		s.try()
		s.back(missing, f.absent)
	}
	for i := range f.list[:len(f.list)-1] {
		p := &f.list[i]
		s.move(p.bin, p.sums)
		s.cand.pos, s.cand.next = p.bin, f.list[i+1].bin
		if there {
			s.move(missing, f.absent)
			s.cand.missingLeft = true
			s.try()
			s.back(missing, f.absent)
		}
		// If the node has no missing values in training, missing values in predictions go to
		// the side with more weight.
		s.cand.missingLeft = !there && 2*s.left.w >= s.total.w
		s.try()
	}
}

// randomCut tries one threshold, which is drawn from the range of the cuts between the lowest
// and the highest bin of the node.
func (s *search) randomCut(feature *bins.Feature) {
	f := s.f
	missing := f.t.cols[s.cand.col].missing
	there := f.absent.w > 0
	lo, hi := f.list[0].bin, f.list[len(f.list)-1].bin
	s.cand.pos, s.cand.missingLeft = -1, true
	if lo < hi {
		first, last := float64(feature.Cuts[lo]), float64(feature.Cuts[hi-1])
		at := first + float64(f.draws.uniform(drawThreshold+uint64(s.cand.feature))*(last-first))
		s.cand.pos = nearest(feature.Cuts, lo, hi-1, at)
		s.cand.missingLeft = there && f.draws.uniform(drawMissing+uint64(s.cand.feature)) < 0.5
	}
	for i := range f.list {
		if f.list[i].bin <= s.cand.pos {
			s.move(f.list[i].bin, f.list[i].sums)
		}
	}
	if !there {
		s.cand.missingLeft = 2*s.left.w >= s.total.w
	} else if s.cand.missingLeft {
		s.move(missing, f.absent)
	}
	s.try()
}

// sets sorts the categories by their means. It tries to send the category with the smallest
// mean left, then the two with the smallest means, and so on. For regression and two classes
// the best of all sets is among these (Breiman, Friedman, Olshen and Stone, "Classification and
// Regression Trees", 1984, §9.4). With more classes it does this for the share of each class in
// turn.
func (s *search) sets() {
	f := s.f
	orders := 1
	if s.several {
		orders = min(len(f.total), mostOrders)
	}
	for k := range orders {
		f.sorted = append(f.sorted[:0], f.list...)
		for _, p := range f.sorted {
			part := p.g
			if s.several {
				part = f.bin(p.bin)[f.class(k, orders)]
			}
			f.keys[p.bin] = float64(part) / float64(p.w)
		}
		slices.SortFunc(f.sorted, func(a, b present) int {
			return cmp.Or(cmp.Compare(f.keys[a.bin], f.keys[b.bin]), cmp.Compare(a.bin, b.bin))
		})
		s.cutSorted()
	}
}

// categoriesOfRow limits splits by features whose bins take two bytes: a feature may have at
// most this many categories for each row of the node. The value 32 is the number of bits in a
// word of a set. In nodes of fewer rows, a category has so few rows that it hardly does more
// than identify them. The sets of such nodes, up to 8 KB each, would be larger than their rows.
const categoriesOfRow = 32

// mostOrders is the largest number of classes by which categories are sorted in turn. If there
// are more classes, those with the largest weights are used.
const mostOrders = 16

// class returns the k-th class by which categories are sorted; orders is the number of such
// classes.
func (f *finder) class(k, orders int) int {
	if orders == len(f.total) {
		return k
	}
	above := func(a, b int) bool { // class a has more weight, or the same weight and the lower number
		return f.total[a] > f.total[b] || f.total[a] == f.total[b] && a < b
	}
	for c := range f.total {
		rank := 0
		for o := range f.total {
			if above(o, c) {
				rank++
			}
		}
		if rank == k {
			return c
		}
	}
	return k
}

// cutSorted tries every way to divide the sorted list of categories in two.
func (s *search) cutSorted() {
	f := s.f
	missing := f.t.cols[s.cand.col].missing
	there := f.absent.w > 0
	s.begin()
	s.cand.set = [4]uint64{}
	best := -1 // number of categories that go left in the best cut
	if there {
		s.cand.missingLeft = true
		s.move(missing, f.absent)
		if s.try() {
			best = 0
		}
		s.back(missing, f.absent)
	}
	for i, p := range f.sorted[:len(f.sorted)-1] {
		s.move(p.bin, p.sums)
		if !s.wide {
			s.cand.set[p.bin>>6] |= 1 << (p.bin & 63)
		}
		if there {
			s.move(missing, f.absent)
			s.cand.missingLeft = true
			if s.try() {
				best = i + 1
			}
			s.back(missing, f.absent)
		}
		s.cand.missingLeft = !there && 2*s.left.w >= s.total.w
		if s.try() {
			best = i + 1
		}
	}
	if s.wide && best >= 0 {
		s.setWide(f.sorted[:best])
	}
}

// randomSet tries one random set of categories: each category goes left with probability 1/2.
// If all categories would go to the same side, the first one goes to the other side.
func (s *search) randomSet() {
	f := s.f
	missing := f.t.cols[s.cand.col].missing
	there := f.absent.w > 0
	draw := drawCategory + uint64(s.cand.feature)<<8
	if s.wide {
		draw = drawWide + uint64(s.cand.feature)<<16
	}
	s.cand.missingLeft = there && f.draws.uniform(drawMissing+uint64(s.cand.feature)) < 0.5
	left := f.sorted[:0]
	for _, p := range f.list {
		if f.draws.uniform(draw+uint64(p.bin)) < 0.5 {
			left = append(left, p)
		}
	}
	n := len(left)
	if same := n == 0 || n == len(f.list); same && !(there && s.cand.missingLeft == (n == 0)) {
		if n == 0 {
			left = append(left, f.list[0])
		} else {
			left = slices.Delete(left, 0, 1)
		}
	}
	for _, p := range left {
		if s.move(p.bin, p.sums); !s.wide {
			s.cand.set[p.bin>>6] |= 1 << (p.bin & 63)
		}
	}
	if !there {
		s.cand.missingLeft = 2*s.left.w >= s.total.w
	} else if s.cand.missingLeft {
		s.move(missing, f.absent)
	}
	if s.try() && s.wide {
		s.setWide(left)
	}
	f.sorted = left
}

// nearest returns the index, between lo and hi inclusive, of the cut nearest to the value at.
// If two cuts are equally near, it returns the lower one.
func nearest(cuts []float32, lo, hi int, at float64) int {
	n, _ := slices.BinarySearchFunc(cuts[lo:hi+1], at, func(c float32, v float64) int { return cmp.Compare(float64(c), v) })
	n += lo
	if n > hi {
		return hi
	}
	if n > lo && at-float64(cuts[n-1]) <= float64(cuts[n])-at {
		return n - 1
	}
	return n
}
