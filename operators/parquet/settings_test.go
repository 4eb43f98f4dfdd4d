package parquet

import "github.com/superstep-ml/superstep/internal/testsize"

// flippedBits is the stride of the bits that a test flips. It is larger under the race
// detector, with which the test of one flipped bit takes long.
var flippedBits = testsize.Raced(testsize.Of[int64](5, 1), 41)
