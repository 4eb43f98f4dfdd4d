//go:build !soak

package comqueue_test

// everyRun determines which jobs of a test also run on workers: the first, and then every
// everyRun-th. It has no factor in common with the number of parallelisms, so that each
// parallelism is repeated at times.
const everyRun = 13

// asWorkers returns the numbers of workers on which a job with the given slots runs.
func asWorkers(slots int) []int {
	switch {
	case slots < 2:
		return nil
	case slots%2 == 0:
		return []int{2}
	}
	return []int{3}
}
