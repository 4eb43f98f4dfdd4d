package core

import "github.com/superstep-ml/superstep/internal/testsize"

// rounds is the number of runs of rapid.Check in TestAnything; each run tries a hundred random
// histories.
var rounds = testsize.Of(4, 300)
