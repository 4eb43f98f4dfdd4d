package kernel

import "github.com/superstep-ml/superstep/internal/testsize"

// ulpPoints is the number of rounds of random arguments per function.
var ulpPoints = testsize.Of(400, 40_000)

// formShapes is 8 if assembly is compared with pure Go at all shapes, and 1 if most shapes are
// skipped.
var formShapes = testsize.Of(1, 8)

// formPoints is the number of rounds of arguments for the forms of a function.
var formPoints = testsize.Of(20, 20_000)
