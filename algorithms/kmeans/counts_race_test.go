//go:build !soak && race

package kmeans_test

// Sizes of the tests under the race detector. These look for unordered accesses; the plain
// tests compare the numbers.
const (
	wildRows      = 400
	referenceRows = 20_000
	mostPeers     = 1 // of the comparisons with other libraries
)

// placements are how these tests divide a job: as a whole and as workers.
var placements = []placement{{1, 0}, {3, 0}, {5, 2}, {16, 3}}

// fewPlacements are for cases that differ little from one that runs at all placements.
var fewPlacements = []placement{{1, 0}, {16, 3}, {3, 0}}
