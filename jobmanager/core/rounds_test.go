package core

import "github.com/superstep-ml/superstep/internal/testsize"

// rounds is the number of random histories of TestAnything, in hundreds.
var rounds = testsize.Of(4, 300)
