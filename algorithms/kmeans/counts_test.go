package kmeans_test

import "github.com/superstep-ml/superstep/internal/testsize"

// Sizes of the tests. Under the race detector these look for unordered accesses; the plain
// tests compare the numbers.
var (
	wildRows      = testsize.Of(400, 100_000)
	referenceRows = testsize.Of(20_000, 100_000)
	mostPeers     = testsize.Raced(4, 1) // of the comparisons with other libraries
)

// placements are how tests divide a job: as a whole and as workers.
var placements = testsize.Raced(
	testsize.Of([]placement{{1, 0}, {2, 0}, {3, 0}, {5, 2}, {16, 3}, {8, 0}}, allPlacements()),
	[]placement{{1, 0}, {3, 0}, {5, 2}, {16, 3}},
)

// fewPlacements are for cases that differ little from one that runs at all placements.
var fewPlacements = testsize.Raced(
	testsize.Of([]placement{{1, 0}, {16, 3}, {8, 0}, {3, 0}}, allPlacements()),
	[]placement{{1, 0}, {16, 3}, {3, 0}},
)

// allPlacements divide a job as a whole, and in every way among two or three workers.
func allPlacements() (all []placement) {
	for _, p := range []int{1, 2, 3, 5, 8, 16} {
		all = append(all, placement{p, 0})
		for workers := 2; workers <= min(p, 3); workers++ {
			all = append(all, placement{p, workers})
		}
	}
	return all
}
