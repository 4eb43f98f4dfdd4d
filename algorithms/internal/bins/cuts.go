package bins

import (
	"slices"
	"sort"
)

// Values are cut into at most B bins of about equal weight, as follows.
//
// If there are at most B distinct values, each value has a bin of its own. Otherwise a value is
// heavy if it weighs more than 1/B of the total weight; there are fewer than B heavy values.
// Each heavy value has a bin. The light values between two successive heavy values, below the
// lowest heavy value, or above the highest one are a segment. The bins that the heavy values do
// not use are divided among the segments in proportion to their weights, by largest remainders
// (Hamilton's apportionment; with equal remainders, the lower segment comes first). The values
// of a segment without a bin share the bin of the heavy value above the segment. If the topmost
// segment has no bin, its values share the bin of the heavy value below it. A segment with k
// bins is cut next to the values at the positions j/k of its weight, for j from 1 to k−1. The
// cut is on the side of the value that is nearer to the position, and below the value if both
// sides are equally near.
//
// Weights are integers, so all computations are exact, and the cuts depend only on the multiset
// of pairs (value, weight).

// firstPositions returns positions in the cumulative weight such that every heavy value is at
// one of them. The positions are ascending. If all values are light, the positions are 0,
// followed by the positions of the cuts.
func firstPositions(total int64, bins int) []int64 {
	at := make([]int64, 0, bins)
	for i := range bins {
		if t := share(int64(i), total, int64(bins)); len(at) == 0 || t > at[len(at)-1] {
			at = append(at, t)
		}
	}
	return at
}

// segment is a range [lo, hi) of the cumulative weight. All values in it are light.
type segment struct {
	lo, hi int64
	bins   int64 // number of bins of the segment
	rest   int64 // remainder of the apportionment
}

// division has the cuts of a column that are known after the first search.
type division struct {
	cuts     []uint32 // each cut separates the keys below it from the other keys
	segments []segment
	at       []int64 // positions of the cuts within segments, which a second search must find
}

// divide returns the cuts that follow from the first search, and the positions to search next. s
// has the values at firstPositions(total, bins).
func divide(s *search, total int64, bins int) division {
	type value struct {
		key           uint32
		below, weight int64
	}
	var heavy []value
	for i, k := range s.prefix {
		if (i == 0 || k != s.prefix[i-1]) && isHeavy(s.weight[i], total, bins) {
			heavy = append(heavy, value{k, s.below[i], s.weight[i]})
		}
	}
	if len(heavy) == 0 {
		whole := []segment{{hi: total, bins: int64(bins)}}
		return division{segments: whole, cuts: nearest(nil, s, whole)}
	}
	segments := make([]segment, 0, len(heavy)+1)
	from := int64(0)
	for _, h := range heavy {
		segments = append(segments, segment{lo: from, hi: h.below})
		from = h.below + h.weight
	}
	segments = append(segments, segment{lo: from, hi: total})
	apportion(segments, int64(bins-len(heavy)))
	d := division{segments: segments}
	for i, h := range heavy {
		if segments[i].bins > 0 || segments[i].lo == segments[i].hi {
			d.cuts = append(d.cuts, h.key)
		}
		if last := i == len(heavy)-1; !(last && segments[i+1].bins == 0) && h.key < ^uint32(0) {
			d.cuts = append(d.cuts, h.key+1)
		}
	}
	for _, g := range segments {
		for j := int64(1); j < g.bins; j++ {
			if t := g.lo + share(j, g.hi-g.lo, g.bins); len(d.at) == 0 || t > d.at[len(d.at)-1] {
				d.at = append(d.at, t)
			}
		}
	}
	return d
}

// isHeavy reports whether weight is more than total/bins.
func isHeavy(weight, total int64, bins int) bool { return weight > share(1, total, int64(bins)) }

// apportion divides bins among the segments in proportion to their weights.
func apportion(segments []segment, bins int64) {
	var light int64
	for _, g := range segments {
		light += g.hi - g.lo
	}
	if light == 0 {
		return
	}
	left := bins
	order := make([]int, len(segments))
	for i := range segments {
		g := &segments[i]
		g.bins, g.rest = shareRest(bins, g.hi-g.lo, light)
		left -= g.bins
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return segments[order[a]].rest > segments[order[b]].rest })
	for _, i := range order[:left] { // remainders are below light and sum to left·light, so at least left of them are above 0
		segments[i].bins++
	}
}

// nearest appends to cuts, for each position that s has searched within a segment, the cut on
// the nearer side of the value at the position.
func nearest(cuts []uint32, s *search, segments []segment) []uint32 {
	g := 0
	for i, t := range s.at {
		for t >= segments[g].hi {
			g++
		}
		if t == segments[g].lo {
			continue // a cut at the start of a segment is not within it
		}
		if t-s.below[i] <= s.below[i]+s.weight[i]-t {
			cuts = append(cuts, s.prefix[i])
		} else if s.prefix[i] < ^uint32(0) {
			cuts = append(cuts, s.prefix[i]+1)
		}
	}
	return cuts
}

// cutsBetween returns the thresholds of cuts. a[i] and b[i] are the neighbours of cut i over all
// subtasks, as defined for column.neighbours.
func cutsBetween(a, b []int64) []float32 {
	var cuts []float32
	last := int64(-1)
	for i := range a {
		if a[i] < 0 || b[i] >= 1<<32 || b[i] == last {
			continue // there is no value on one side, or the threshold repeats the previous threshold
		}
		last = b[i]
		cuts = append(cuts, between(valueOf(uint32(a[i])), valueOf(uint32(b[i]))))
	}
	return cuts
}

// cutsOf returns thresholds that give each value a bin of its own. distinct has the keys of the
// values in ascending order.
func cutsOf(distinct []uint32) []float32 {
	if len(distinct) < 2 {
		return nil
	}
	cuts := make([]float32, len(distinct)-1)
	for i := range cuts {
		cuts[i] = between(valueOf(distinct[i]), valueOf(distinct[i+1]))
	}
	return cuts
}

// tidy sorts cuts in place, removes duplicates, and returns the result.
func tidy(cuts []uint32) []uint32 {
	slices.Sort(cuts)
	return slices.Compact(cuts)
}
