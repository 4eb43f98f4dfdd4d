//go:build !soak

package gbdt_test

// What of the heavier tests is run; counts_soak_test.go has all.
const (
	// sameBitsEvery divides the trainings that are run at every parallelism.
	sameBitsEvery = 3
	// learnRows and learnRounds are the sizes of the trainings of all objectives.
	learnRows, learnRounds = 320, 12
	// orders is how many orders of the rows are tried.
	orders = 1
	// monotoneRows is the number of rows along whose features predictions are followed.
	monotoneRows = 6
)
