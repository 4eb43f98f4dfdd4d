// Package taskmanager offers the slots of a machine to a job manager, and runs a
// worker process for each job that gets some.
//
//	err := taskmanager.Run(ctx, taskmanager.Config{
//		JobManager:  "localhost:6123",
//		DialOptions: credentials,
//		Dir:         "/var/lib/superstep",
//	})
//
// Run registers and sends heartbeats; while the job manager is away it tries to reach
// it again. What it does is in these parts:
//
//	connect.go    the conversation with the job manager, and the lease on it
//	outbox.go     what is to be told to it, in order and at least once
//	artifacts.go  executables by hash
//	life.go       the life of a worker, as a table
//	worker.go     its shell: process, pipes, timers
//	launch.go     how it starts
//	hearing.go    what it is told, and what it says
//	deliver.go    what it produces in bulk
//	output.go     what it prints
//	ending.go     why it ended
//
// # What workers may count on
//
// A worker is a process of its own, in a process group of its own, in a directory of
// its own that is removed with it. It inherits the variables of the environment that
// are harmless, never a token. It has as many processors as slots, and a limit on its
// heap that follows from its budget. What it writes to standard output and error is
// taken at once, whatever it is and however much; it never waits for who reads it.
// Rows that it collects wait for the job manager in its pipe.
//
// # What the job manager may count on
//
// The events of a worker arrive in order, and at least once: what may have been lost
// with a connection is told again. Ended comes last. When Finished, Resolved,
// Committed or Ended of a worker arrives, its deliveries before it were confirmed by
// the job manager; rows that cannot be confirmed fail the worker, lines of its output
// do not. A worker whose process is gone, was stopped, speaks nonsense, or does not
// start as one, ends with a failure that says so.
//
// # When things go wrong
//
// Nothing of a worker outlives it but processes that it started and that left its
// process group. Nothing of the task manager's workers outlives the task manager: on
// Linux the kernel kills them when the thread that started them is gone, and
// everywhere the end of their pipe tells them. They also end when the lease lapses,
// which is a while after the last heartbeat that the job manager acknowledged.
//
// Whoever waits for a sign of life counts only the time in which this process had
// turns to hear it: under any load nobody is taken for dead whose words wait to be
// read.
package taskmanager
