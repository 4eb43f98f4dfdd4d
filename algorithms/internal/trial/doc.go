// Package trial is what tests of algorithms share: tables of numbers as datasets, runs
// of anonymous jobs that are checked for leaks, and the assertion that a job gives the
// same bits at any parallelism, among several workers, with any batch size, with
// assembly and without.
package trial
