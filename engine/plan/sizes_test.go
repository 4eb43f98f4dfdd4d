package plan

import "github.com/superstep-ml/superstep/internal/testsize"

// many is the scale of large graphs. It is smaller under the race detector, which makes the
// tests several times slower. This package has no concurrency that the detector could check.
var many = testsize.Raced(10_000, 1000)
