//go:build !soak

package comqueue_test

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
