package grow

import "github.com/superstep-ml/superstep/internal/testsize"

// referenceProblems is the number of random problems in TestReference.
var referenceProblems = testsize.Raced(testsize.Of(300, 5000), 60)
