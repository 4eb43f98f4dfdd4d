package tree

import "slices"

// AlsoSeen returns the codes that one or another of two trainings has seen of each feature, nil
// where one of them does not tell.
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
