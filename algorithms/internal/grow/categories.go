package grow

import (
	"cmp"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Categories that occur in no row of a node go to the child with the larger sum of hessians,
// because its mean is closer to the mean of the node. Missing values, and categories that
// training has not seen, go to the same child if no row of the node has a missing value.

// binSet is a bitset of bins, 64 to a word. The words are int64, since records of splits are
// slices of int64.
type binSet []int64

func (s binSet) has(bin int) bool { return uint64(s[bin>>6])>>(bin&63)&1 == 1 }

// setWords returns the number of words of a bitset for the bins of any feature of a layout. It
// is at least the number of words for MaxBins bins.
func setWords(l *bins.Layout) int {
	most := bins.MaxBins
	for _, f := range l.Wide {
		most = max(most, l.Features[f].Bins)
	}
	return (most + 63) / 64
}

// setOf sets the bitset of the best split, which is a split by f. present has the bins that
// occur in rows of the node, and left has those bins of present that go left. The parameter
// some is set if the feature is missing in at least one row of the node.
func (s *searcher) setOf(f *bins.Feature, left, present []int32, some bool) {
	b := &s.best
	b.set = kernel.Sized(b.set, s.words)
	clear(b.set)
	if 2*s.scorer.weight(b.left) > s.scorer.weight(s.node) {
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

// oneHot tries each category against all others.
func (s *searcher) oneHot(f *bins.Feature, number int32, sums []int64) {
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
		candidate := split{feature: number, place: int32(b), categorical: true}
		if s.bothWays(bin, missing, some, candidate) {
			taken = int32(b)
		}
	}
	if taken >= 0 {
		s.setOf(f, []int32{taken}, s.order, some)
	}
}

// bothWays offers the split with missing values on the right, and, if the parameter some is
// set, also the split with missing values on the left. left has the sums of the left child
// without missing values. bothWays reports whether one of the splits became the best split.
func (s *searcher) bothWays(left, missing []int64, some bool, candidate split) (taken bool) {
	if some {
		candidate.missingLeft = true
		taken = s.offer(plus(s.lefts[0], left, missing), candidate)
		candidate.missingLeft = false
	}
	return s.offer(left, candidate) || taken
}

// sorted sorts the categories of the node by gradient/hessian and tries all cuts of the sorted
// sequence in two. For a convex loss, the best split into any two subsets is among these cuts
// (Fisher, "On Grouping for Maximum Homogeneity", JASA 1958).
func (s *searcher) sorted(f *bins.Feature, number int32, sums []int64) {
	if s.soften = s.p.LearnCategories; s.soften && !s.shrink(f, sums) {
		return
	}
	s.scorer.lambda += s.p.CategoryLambda
	s.cuts(f, number, sums)
	s.scorer.lambda, s.soften = s.p.Lambda, false
}

// cuts sorts the categories by their keys and tries all cuts.
func (s *searcher) cuts(f *bins.Feature, number int32, sums []int64) {
	w := s.scorer.width
	s.order, s.keys = s.order[:0], kernel.Sized(s.keys, f.Bins)
	for b := range f.Bins {
		if bin := sums[b*w:][:w]; !zero(bin) {
			s.order = append(s.order, int32(b))
			s.keys[b] = s.key(b, bin)
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
	candidate := split{feature: number, categorical: true}
	taken := 0 // number of categories to the left of the cut that is the best split so far
	group, soft := 0.0, 0.0
	for i, b := range s.order {
		bin := sums[int(b)*w:][:w]
		plus(s.acc, s.acc, bin)
		if s.soften {
			soft += s.soft[b]
		}
		group += s.scorer.weight(bin)
		candidate.place = int32(i)
		if most > 0 && min(i+1, len(s.order)-i-1) > most {
			continue
		}
		if i == len(s.order)-1 && !some {
			break
		}
		if !s.enough(group) {
			continue
		}
		group = 0
		if s.soften && s.bothSoft(f, missing, some, soft, candidate) || !s.soften && s.bothWays(s.acc, missing, some, candidate) {
			taken = i + 1
		}
	}
	if taken > 0 {
		s.setOf(f, s.order[:taken], s.order, some)
	}
}

// enough reports whether MinCategoryRows permits the current cut. The categories between the
// last cut that was tried and the current cut must have at least MinCategoryRows rows, and so
// must the categories to the right of the current cut. Numbers of rows are estimated from
// hessians. group is the sum of hessians since the last cut that was tried.
func (s *searcher) enough(group float64) bool {
	if s.p.MinCategoryRows <= 0 {
		return true
	}
	all, left := s.scorer.weight(s.node), s.scorer.weight(s.acc)
	least := float64(all*float64(s.p.MinCategoryRows)) / float64(s.rows)
	return group >= least && all-left >= least
}

// bothSoft does what bothWays does with shrunk gradients. s.acc has the sums of the categories
// that go left. soft is the sum of their shrunk gradients, which replaces the sum of their
// gradients.
func (s *searcher) bothSoft(f *bins.Feature, missing []int64, some bool, soft float64, candidate split) (taken bool) {
	node := float64(s.node[0])
	offer := func(left []int64, soft float64) bool {
		for k, v := range s.node {
			s.other[k] = v - left[k]
		}
		return s.take(left, soft, node-soft, candidate)
	}
	if some {
		candidate.missingLeft = true
		with := soft + s.soft[f.Bins]
		taken = offer(plus(s.lefts[0], s.acc, missing), with)
		candidate.missingLeft = false
	}
	return offer(s.acc, soft) || taken
}

// maxCategories returns the largest number of categories on the side of a cut that has fewer
// categories; 0 means no limit. all is the number of categories of the feature.
func (p *Params) maxCategories(all int) int {
	if p.RootOfCategories && p.MaxCategories > 0 {
		return max(p.MaxCategories, int(2*math.Sqrt(float64(all))))
	}
	return p.MaxCategories
}

// key returns the sort key of the category whose bin has the number b and the sums in bin.
func (s *searcher) key(b int, bin []int64) float64 {
	if s.soften {
		if h := float64(bin[1]); h > 0 {
			return s.soft[b] / h
		}
		return 0
	}
	below := s.scorer.weight(bin) + s.p.CategorySmooth
	if !(below > 0) {
		return 0
	}
	return float64(float64(bin[0])*s.scorer.unit.g) / below
}
