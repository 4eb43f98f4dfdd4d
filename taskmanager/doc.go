// Package taskmanager offers the slots of a machine to a job manager, and runs a
// worker process for each job that gets some.
package taskmanager
