package objective_test

import "github.com/superstep-ml/superstep/internal/testsize"

// everyDesign is the stride of the designs with which a loss is tested.
var everyDesign = testsize.Of(3, 1)
