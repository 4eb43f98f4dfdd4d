//go:build soak

package parquet

// asWorkers returns all settings with two or three workers.
func asWorkers() (all []setting) {
	for _, p := range []int{1, 2, 3, 8} {
		for _, rows := range []int{1, 7, 1024} {
			for workers := 2; workers <= min(p, 3); workers++ {
				all = append(all, setting{p, rows, workers})
			}
		}
	}
	return append(all, setting{1, 7, 1})
}

// flippedBits is the stride of the bits that a test flips.
const flippedBits = 1
