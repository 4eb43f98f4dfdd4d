package comqueue_test

import "github.com/superstep-ml/superstep/internal/testsize"

// everyRun is the stride of the runs of a test that are repeated on workers. It has no factor
// in common with the number of parallelisms, so each parallelism has its turn.
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
