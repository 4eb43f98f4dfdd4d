//go:build !soak

package parquet

// asWorkers are the settings of a quick test with several workers; one worker has more subtasks
// than the others.
func asWorkers() []setting { return []setting{{3, 1, 2}, {8, 7, 3}} }

// flippedBits is the stride of the bits that are flipped. Under the race detector each takes long.
const flippedBits = 5 + 36*raced
