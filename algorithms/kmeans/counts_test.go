package kmeans_test

import "github.com/superstep-ml/superstep/internal/testsize"

// These are the sizes of the tests. Some are smaller under the race detector, where the tests
// only have to find unordered accesses to memory.
var (
	wildRows      = testsize.Of(400, 100_000)
	referenceRows = testsize.Of(20_000, 100_000)
	mostPeers     = testsize.Raced(4, 1) // number of data sets on which inertias are compared with scikit-learn
)

// placements are the placements at which tests run a job, in one process and divided among
// workers.
var placements = testsize.Raced(
	testsize.Of([]placement{{1, 0}, {2, 0}, {3, 0}, {5, 2}, {16, 3}, {8, 0}}, allPlacements()),
	[]placement{{1, 0}, {3, 0}, {5, 2}, {16, 3}},
)

// fewPlacements are the placements for cases that differ little from a case that runs at all
// placements.
var fewPlacements = testsize.Raced(
	testsize.Of([]placement{{1, 0}, {16, 3}, {8, 0}, {3, 0}}, allPlacements()),
	[]placement{{1, 0}, {16, 3}, {3, 0}},
)

// allPlacements returns placements in one process, and every way to divide a job among two or
// three workers.
func allPlacements() (all []placement) {
	for _, p := range []int{1, 2, 3, 5, 8, 16} {
		all = append(all, placement{p, 0})
		for workers := 2; workers <= min(p, 3); workers++ {
			all = append(all, placement{p, workers})
		}
	}
	return all
}
