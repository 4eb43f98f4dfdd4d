package parquet

import "github.com/superstep-ml/superstep/internal/testsize"

// asWorkers are settings with several workers; one worker has more subtasks than the others.
// Full tests take all settings with two or three workers.
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

// flippedBits is the stride of the bits that are flipped.
var flippedBits = testsize.Raced(testsize.Of[int64](5, 1), 41)
