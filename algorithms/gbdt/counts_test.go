package gbdt_test

import "github.com/superstep-ml/superstep/internal/testsize"

// Sizes of the heavier tests.
var (
	// Only every sameBitsEvery-th training is run at every parallelism.
	sameBitsEvery = testsize.Of(3, 1)
	// learnRows and learnRounds are the sizes of the trainings of all objectives.
	learnRows, learnRounds = testsize.Of(320, 600), testsize.Of(12, 30)
	// orders is the number of orders of the rows that are tried.
	orders = testsize.Of(1, 4)
	// monotoneRows is the number of rows in which a feature is varied to check predictions.
	monotoneRows = testsize.Of(6, 40)
)
