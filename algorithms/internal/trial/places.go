//go:build !soak

package trial

// places are the fewest that differ in everything: parallelism, workers and batches.
// tests/samebits tries more of them, with every estimator and operator.
var places = []place{{1, 0, 1024}, {3, 3, 7}}
