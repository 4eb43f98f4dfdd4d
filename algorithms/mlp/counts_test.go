package mlp_test

import "github.com/superstep-ml/superstep/internal/testsize"

// comparedNetworks is the number of reference networks of scikit-learn in the comparison. All
// are compared in full tests.
var comparedNetworks = testsize.Of(1, 4)
