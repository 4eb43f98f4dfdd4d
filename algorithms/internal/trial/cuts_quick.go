//go:build !soak

package trial

// cuts are the runs of SameBitsOfState in which queues are cut.
func cuts(supersteps int) []cutting { return []cutting{afterEach(supersteps, 2, 1, 8, 3)} }
