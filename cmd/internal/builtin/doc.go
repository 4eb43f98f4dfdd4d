// Package builtin has the jobs that are part of the superstep binary, so that users need not write
// a program. On a cluster these jobs need no upload, because every task manager has the binary.
package builtin
