//go:build !soak

package gbdt_test

// Sizes of the heavier tests; counts_soak_test.go has the full ones.
const (
	// sameBitsEvery is n where only every n-th training is run at every parallelism.
	sameBitsEvery = 3
	// learnRows and learnRounds are the sizes of the trainings of all objectives.
	learnRows, learnRounds = 320, 12
	// orders is how many orders of the rows are tried.
	orders = 1
	// monotoneRows is the number of rows in which a feature is varied to check predictions.
	monotoneRows = 6
)
