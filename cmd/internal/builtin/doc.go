// Package builtin has the jobs that the superstep binary can run by itself. They need no
// program of the user's. On a cluster they need no upload, as every task manager has the
// binary.
package builtin
