//go:build soak

package comqueue_test

// everyRun is 1: all jobs of a test also run on workers.
const everyRun = 1

// asWorkers returns the numbers of workers on which a job with the given slots runs.
func asWorkers(slots int) (all []int) {
	for workers := 2; workers <= min(slots, 3); workers++ {
		all = append(all, workers)
	}
	return all
}
