package comqueue_test

import "github.com/superstep-ml/superstep/internal/testsize"

// everyRun determines which jobs of a test also run on workers: the first, and then every
// everyRun-th. It has no factor in common with the number of parallelisms, so that each
// parallelism is repeated from time to time.
var everyRun = testsize.Of[int64](13, 1)

// asWorkers returns the numbers of workers on which a job with the given slots runs.
func asWorkers(slots int) (all []int) {
	switch {
	case slots < 2:
		return nil
	case testsize.Soak:
		for workers := 2; workers <= min(slots, 3); workers++ {
			all = append(all, workers)
		}
		return all
	case slots%2 == 0:
		return []int{2}
	}
	return []int{3}
}
