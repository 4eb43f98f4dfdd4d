//go:build soak

package trial

// cuts are the runs of SameBitsOfState in which queues are cut.
func cuts(supersteps int) []cutting {
	all := []cutting{afterEach(supersteps, 2, 1, 8, 3), afterEach(supersteps, 5), afterEach(supersteps, 1, 7)}
	for _, at := range []int{1, 2, 3, supersteps / 2, supersteps - 1, supersteps} {
		if at < 1 {
			continue
		}
		for _, p := range []int{1, 2, 5, 8} {
			all = append(all, cutting{p: 3, at: map[int]int{at: p}})
		}
	}
	return all
}
