// Package taskmanager offers the slots of a machine to a job manager, and runs a
// worker process for each job that gets some.
//
//	err := taskmanager.Run(ctx, taskmanager.Config{
//		JobManager:  "localhost:6123",
//		DialOptions: credentials,
//		Dir:         "/var/lib/superstep",
//	})
//
// Run registers and sends heartbeats; while the job manager is away, Run tries to reach it
// again. Its parts are:
//
//	connect.go    the stream to the job manager, and the lease on it
//	outbox.go     events for the job manager, sent in order and at least once
//	artifacts.go  executables by hash
//	life.go       the states of a worker, as a transition table
//	worker.go     the loop of a worker: process, pipes, timers
//	launch.go     the start of a worker's process
//	hearing.go    the commands for a worker, and the frames from it
//	deliver.go    the rows, text and log lines that a worker produces
//	output.go     the standard output and error of a worker
//	ending.go     why a worker ended
//
// # What workers may rely on
//
// A worker is a process of its own, in a process group of its own, in a directory of its own
// that is removed with it. It inherits the variables of the environment that are harmless,
// never a token. It has as many processors as slots, and a limit on its heap that follows from
// its budget. Whatever it writes to standard output and error is read at once, so that output
// never makes it wait. Rows that it collects wait for the job manager in its pipe.
//
// # What the job manager may rely on
//
// The events of a worker arrive in order, and at least once: events that may have been lost
// with a connection are sent again. Ended comes last. When Finished, Resolved, Committed or
// Ended of a worker arrives, the job manager has confirmed all earlier deliveries; rows that
// cannot be confirmed fail the worker, lines of its output do not. A worker whose process is
// gone, was stopped, breaks the protocol, or does not start as a worker, ends with a failure
// that says so.
//
// # When things go wrong
//
// Only processes that a worker started and that left its process group can outlive the worker.
// No worker outlives the task manager: on Linux the kernel kills the workers when the thread
// that started them is gone, and everywhere the end of its pipe tells a worker to end. Workers
// also end when the lease lapses, some time after the last heartbeat that the job manager
// acknowledged.
//
// A wait for a sign of life counts only the time in which this process ran and could have
// received it. So under any load, no worker is taken for dead while its frames wait to be read.
package taskmanager
