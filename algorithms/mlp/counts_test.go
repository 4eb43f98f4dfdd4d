package mlp_test

import "github.com/superstep-ml/superstep/internal/testsize"

// comparedNetworks is the number of scikit-learn's networks with which TestAsGoodAsScikitLearn
// compares. Full tests compare with all of them.
var comparedNetworks = testsize.Of(1, 4)
