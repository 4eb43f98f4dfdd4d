package forest

import "github.com/superstep-ml/superstep/internal/testsize"

// referenceTrials is how many problems are compared with the reference.
var referenceTrials = testsize.Of(300, 20_000)
