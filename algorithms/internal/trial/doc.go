// Package trial is what tests of algorithms share: tables of numbers as datasets, made and
// from testdata; runs of anonymous jobs that are checked for leaks; and what is asserted of
// every estimator. A job gives the same bits at any parallelism, among several workers,
// with any batch size, with assembly and without. A model comes back from its file, and
// none from one that is damaged. Its operator, methods and bound step predict the same,
// concurrently. Supersteps allocate nothing.
package trial
