package grow

import (
	"cmp"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// Where no row of a node misses a categorical feature, missing values and categories that
// training has not seen go right, with those that the split does not single out. So do
// categories that no row of the node has, but for features of very many: of these a node of
// a few rows has seen a few, and the others, and what is missing, go where more weight goes,
// which is where the mean of the node is nearer.

// binSet is a set of bins, 64 to a word: integers, as records of splits have them.
type binSet []int64

func (s binSet) has(bin int) bool { return uint64(s[bin>>6])>>(bin&63)&1 == 1 }

// setWords is how many words the sets of a layout's bins have; never less than those of the
// bins of a byte.
func setWords(l *bins.Layout) int {
	most := bins.MaxBins
	for _, f := range l.Wide {
		most = max(most, l.Features[f].Bins)
	}
	return (most + 63) / 64
}

// setOf gives the best split, by a feature of which present are the bins that rows of the
// node have, its set: left are those that go left. some says that values are missing.
func (s *searcher) setOf(f *bins.Feature, left, present []int32, some bool) {
	b := &s.best
	b.set = sized(b.set, s.words)
	clear(b.set)
	wide := s.layout.WideColumn(int(b.feature)) >= 0
	if wide && 2*s.scorer.weight(b.left) > s.scorer.weight(s.node) {
		for bin := range f.Bins {
			b.set[bin>>6] |= 1 << (bin & 63)
		}
		for _, bin := range present {
			b.set[bin>>6] &^= 1 << (bin & 63)
		}
		b.missingLeft = b.missingLeft || !some
	}
	for _, bin := range left {
		b.set[bin>>6] |= 1 << (bin & 63)
	}
}

// oneHot tries to split one category off the others.
func (s *searcher) oneHot(f *bins.Feature, number int32, sums []int64, order int32) {
	w := s.scorer.width
	missing := sums[f.Bins*w:][:w]
	some := !zero(missing)
	s.order = s.order[:0]
	taken := int32(-1)
	for b := range f.Bins {
		bin := sums[b*w:][:w]
		if zero(bin) {
			continue
		}
		s.order = append(s.order, int32(b))
		candidate := split{order: order, feature: number, place: int32(b), categorical: true}
		if s.bothWays(bin, missing, some, candidate) {
			taken = int32(b)
		}
	}
	if taken >= 0 {
		s.setOf(f, []int32{taken}, s.order, some)
	}
}

// bothWays offers a split with missing values on the left, if there are some, and on the
// right, and tells whether one of them was taken.
func (s *searcher) bothWays(left, missing []int64, some bool, candidate split) (taken bool) {
	if some {
		candidate.missingLeft = true
		taken = s.offer(plus(s.lefts[0], left, missing), candidate)
		candidate.missingLeft = false
	}
	return s.offer(left, candidate) || taken
}

// sorted tries to cut the categories of the node in two, in the order of their gradients
// over their hessians: where the loss is convex the best of all subsets is among these
// (Fisher, "On Grouping for Maximum Homogeneity", JASA 1958). Where classes are counted, of
// which that holds for two, they are sorted by the share of each class in turn.
func (s *searcher) sorted(f *bins.Feature, number int32, sums []int64, order int32) {
	if s.p.Criterion == Newton {
		s.scorer.lambda += s.p.CategoryLambda
		s.cuts(f, number, sums, order, 0)
		s.scorer.lambda = s.p.Lambda
		return
	}
	for class := range s.scorer.sums {
		if class > 0 || s.scorer.sums > 2 || s.scorer.sums == 1 {
			s.cuts(f, number, sums, order, class)
		}
	}
}

// cuts sorts categories by one of their sums and tries all cuts.
func (s *searcher) cuts(f *bins.Feature, number int32, sums []int64, order int32, by int) {
	w := s.scorer.width
	s.order, s.keys = s.order[:0], sized(s.keys, f.Bins)
	for b := range f.Bins {
		if bin := sums[b*w:][:w]; !zero(bin) {
			s.order = append(s.order, int32(b))
			s.keys[b] = s.key(bin, by)
		}
	}
	keys := s.keys
	slices.SortFunc(s.order, func(x, y int32) int {
		if c := cmp.Compare(keys[x], keys[y]); c != 0 {
			return c
		}
		return cmp.Compare(x, y)
	})
	missing := sums[f.Bins*w:][:w]
	some := !zero(missing)
	most := s.p.maxCategories(f.Bins)
	clear(s.acc)
	candidate := split{order: order, feature: number, categorical: true}
	taken := 0 // how many categories are left of the best cut
	for i, b := range s.order {
		plus(s.acc, s.acc, sums[int(b)*w:][:w])
		candidate.place = int32(by<<16 + i)
		if most > 0 && min(i+1, len(s.order)-i-1) > most {
			continue
		}
		if i == len(s.order)-1 && !some {
			break
		}
		if s.bothWays(s.acc, missing, some, candidate) {
			taken = i + 1
		}
	}
	if taken > 0 {
		s.setOf(f, s.order[:taken], s.order, some)
	}
}

// maxCategories is the largest number of categories, of so many that a feature has, on the
// smaller side of a cut; 0 stands for no limit.
func (p *Params) maxCategories(all int) int {
	if p.RootOfCategories && p.MaxCategories > 0 {
		return max(p.MaxCategories, int(2*math.Sqrt(float64(all))))
	}
	return p.MaxCategories
}

// key is what a category is sorted by.
func (s *searcher) key(bin []int64, by int) float64 {
	below := s.scorer.weight(bin) + s.p.CategorySmooth
	if !(below > 0) {
		return 0
	}
	if s.p.Criterion == Newton {
		return float64(float64(bin[0])*s.scorer.unit.g) / below
	}
	return float64(float64(bin[by])*s.scorer.unit.h) / below
}
