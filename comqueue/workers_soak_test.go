//go:build soak

package comqueue_test

// everyRun says that one in so many runs of a test is repeated as workers.
const everyRun = 1

// asWorkers returns the numbers of workers with which a job of that many slots runs.
func asWorkers(slots int) (all []int) {
	for workers := 2; workers <= min(slots, 3); workers++ {
		all = append(all, workers)
	}
	return all
}
