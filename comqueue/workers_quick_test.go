//go:build !soak

package comqueue_test

// everyRun is the stride of the runs of a test that are repeated on workers. It has no factor
// in common with the number of parallelisms, so each parallelism has its turn.
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
