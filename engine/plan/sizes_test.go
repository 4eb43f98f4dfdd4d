package plan

import "github.com/superstep-ml/superstep/internal/testsize"

// many is the scale of large graphs. It is smaller under the race detector, which slows this
// package down several times; this package has no concurrency that it could check.
var many = testsize.Raced(10_000, 1000)
