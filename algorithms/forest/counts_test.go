package forest

import "github.com/superstep-ml/superstep/internal/testsize"

// referenceTrials is the number of random problems on which builder is compared with reference.
var referenceTrials = testsize.Of(300, 20_000)
