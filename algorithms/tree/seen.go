package tree

import "slices"

// AlsoSeen returns, for each feature, the union of the codes that two trainings have seen. The
// entry of a feature is nil if the codes of one training are not known.
func AlsoSeen(a, b [][]int32) [][]int32 {
	var all [][]int32
	for f := range min(len(a), len(b)) {
		if a[f] == nil || b[f] == nil {
			continue
		}
		if all == nil {
			all = make([][]int32, len(a))
		}
		codes := slices.Concat(a[f], b[f])
		slices.Sort(codes)
		all[f] = slices.Compact(codes)
	}
	return all
}
