//go:build !soak && !race

package kmeans_test

// Sizes of the quick tests.
const (
	wildRows      = 400
	referenceRows = 20_000
	mostPeers     = 4 // of the comparisons with other libraries
)

// placements are how the quick tests divide a job: as a whole and as workers.
var placements = []placement{{1, 0}, {2, 0}, {3, 0}, {5, 2}, {16, 3}, {8, 0}}

// fewPlacements are for cases that differ little from one that runs at all placements.
var fewPlacements = []placement{{1, 0}, {16, 3}, {8, 0}, {3, 0}}
