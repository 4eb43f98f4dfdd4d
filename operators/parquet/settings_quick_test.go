//go:build !soak

package parquet

// asWorkers returns the settings of a quick test with several workers. In each, one worker has
// more subtasks than the others.
func asWorkers() []setting { return []setting{{3, 1, 2}, {8, 7, 3}} }

// flippedBits is the stride of the bits that a test flips. It is larger under the race
// detector, under which each takes long.
const flippedBits = 5 + 36*raced
