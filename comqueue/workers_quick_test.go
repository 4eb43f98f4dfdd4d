//go:build !soak

package comqueue_test

// everyRun says that one in so many runs of a test is repeated as workers. It has no factor in
// common with the number of parallelisms, so that each parallelism is repeated.
const everyRun = 13

// asWorkers returns the numbers of workers with which a job of that many slots runs.
func asWorkers(slots int) []int {
	switch {
	case slots < 2:
		return nil
	case slots%2 == 0:
		return []int{2}
	}
	return []int{3}
}
