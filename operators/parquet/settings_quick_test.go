//go:build !soak

package parquet

// asWorkers are the settings of a quick test with several workers, of which one has more
// subtasks than the others.
func asWorkers() []setting { return []setting{{3, 1, 2}, {8, 7, 3}} }

// flippedBits is of how many bits one is flipped.
const flippedBits = 5
