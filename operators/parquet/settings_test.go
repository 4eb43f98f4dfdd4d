package parquet

import "github.com/superstep-ml/superstep/internal/testsize"

// asWorkers returns settings with several workers, of which one has more subtasks than the
// others. In a soak test it returns all settings with two or three workers.
func asWorkers() (all []setting) {
	if !testsize.Soak {
		return []setting{{3, 1, 2}, {8, 7, 3}}
	}
	for _, p := range []int{1, 2, 3, 8} {
		for _, rows := range []int{1, 7, 1024} {
			for workers := 2; workers <= min(p, 3); workers++ {
				all = append(all, setting{p, rows, workers})
			}
		}
	}
	return append(all, setting{1, 7, 1})
}

// flippedBits is the stride of the bits that a test flips. It is larger under the race
// detector, with which the test of one flipped bit takes long.
var flippedBits = testsize.Raced(testsize.Of[int64](5, 1), 41)
