//go:build !soak

package trial

// places are the fewest that differ in everything: parallelism, workers and batches. More of
// them, for every estimator and operator, are in tests/samebits.
var places = []place{{1, 0, 1024}, {3, 3, 7}}
