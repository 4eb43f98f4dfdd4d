// Package builtin is the jobs that the superstep binary can run by itself: they need
// no program of the user's, and on a cluster no upload, as every task manager has the
// binary.
package builtin
