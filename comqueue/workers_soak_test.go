//go:build soak

package comqueue_test

// asWorkers are the numbers of workers that a job of so many slots is run as.
func asWorkers(slots int) (all []int) {
	for workers := 2; workers <= min(slots, 3); workers++ {
		all = append(all, workers)
	}
	return all
}
