//go:build !soak

package comqueue_test

// everyRun is how many runs of a test there are to one that is repeated as workers. It
// has no factor in common with the number of parallelisms, so that all have their turn.
const everyRun = 13

// asWorkers are the numbers of workers that a job of so many slots is run as.
func asWorkers(slots int) []int {
	switch {
	case slots < 2:
		return nil
	case slots%2 == 0:
		return []int{2}
	}
	return []int{3}
}
