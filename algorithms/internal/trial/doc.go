// Package trial is what tests of algorithms share: tables of numbers, generated or from
// testdata; runs of anonymous jobs that are checked for leaks; and the assertions about
// every estimator. A job gives the same bits at any parallelism, among several workers, with
// any batch size, with assembly and without. A model comes back from its file, and a damaged
// file is refused. Its operator, methods and bound step predict the same, concurrently.
// Supersteps allocate nothing.
package trial
