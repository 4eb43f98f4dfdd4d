//go:build soak

package comqueue_test

// everyRun is how many runs of a test there are to one that is repeated as workers.
const everyRun = 1

// asWorkers are the numbers of workers that a job of so many slots is run as.
func asWorkers(slots int) (all []int) {
	for workers := 2; workers <= min(slots, 3); workers++ {
		all = append(all, workers)
	}
	return all
}
