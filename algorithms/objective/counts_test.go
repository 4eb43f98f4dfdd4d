package objective_test

import "github.com/superstep-ml/superstep/internal/testsize"

// everyDesign is n if a loss is tested with every n-th design.
var everyDesign = testsize.Of(3, 1)
