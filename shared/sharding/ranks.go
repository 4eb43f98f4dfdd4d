package sharding

import "math/bits"

// RankSchedule appends to dst the merges of the canonical fold tree over the ranks 0..p-1.
// After the last step the result is in rank 0's slot. Let q = 2^⌊log2 p⌋ and r = p − q. First
// the pairs of ranks (2i, 2i+1) for i < r are merged, which leaves q values in rank order.
// These q values are merged by recursive doubling: neighbours at distance 1, then 2, then 4, up
// to q/2.
//
// The steps are ordered by level, and within each level by rank. For p <= 1 there are no steps.
func RankSchedule(p int, dst []FoldStep) []FoldStep {
	if p <= 1 {
		return dst
	}
	q := 1 << (bits.Len(uint(p)) - 1)
	r := p - q
	for i := range r {
		dst = append(dst, FoldStep{2 * i, 2*i + 1})
	}
	// slot returns the rank that holds value j of the q values.
	slot := func(j int) int {
		if j < r {
			return 2 * j
		}
		return j + r
	}
	for distance := 1; distance < q; distance *= 2 {
		for j := 0; j < q; j += 2 * distance {
			dst = append(dst, FoldStep{slot(j), slot(j + distance)})
		}
	}
	return dst
}

// FoldRanks folds one value per rank in the order of RankSchedule. merge may accumulate into
// left, and returns the merged value. FoldRanks overwrites values. It returns the zero T if
// there are no values.
func FoldRanks[T any](values []T, merge func(left, right T) T) T {
	if len(values) == 0 {
		var zero T
		return zero
	}
	for _, s := range RankSchedule(len(values), nil) {
		values[s.Left] = merge(values[s.Left], values[s.Right])
	}
	return values[0]
}
