//go:build soak

package kmeans_test

// Sizes of the thorough tests.
const (
	wildRows      = 100_000
	referenceRows = 100_000
	mostPeers     = 4 // of the comparisons with other libraries
)

// placements are how the thorough tests divide a job: as a whole, and in every way among
// two or three workers.
var placements = func() (all []placement) {
	for _, p := range []int{1, 2, 3, 5, 8, 16} {
		all = append(all, placement{p, 0})
		for workers := 2; workers <= min(p, 3); workers++ {
			all = append(all, placement{p, workers})
		}
	}
	return all
}()

// fewPlacements are for cases that differ little from one that runs at all placements.
var fewPlacements = placements
