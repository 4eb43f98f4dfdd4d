// Package taskmanager offers the slots of a machine to a job manager, and runs a
// worker process for each job that gets some.
//
//	err := taskmanager.Run(ctx, taskmanager.Config{
//		JobManager:  "localhost:6123",
//		DialOptions: credentials,
//		Dir:         "/var/lib/superstep",
//	})
//
// Run registers with the job manager and sends heartbeats. If the connection breaks, Run keeps
// trying to reconnect. When the context is done, it announces to the job manager that it leaves,
// and stays for a limited time while jobs go on elsewhere. Package core makes decisions. The files of
// this package are:
//
//	connect.go    the stream to the job manager, and the lease on it
//	artifacts.go  executables by hash
//	worker.go     the loop of a worker: process, pipes, timers
//	child.go      the process of a worker, with its pipes
//	launch.go     the start of a worker's process
//	kept.go       the processes that wait for the next attempt of their jobs
//	hearing.go    the commands for a worker, and the frames from it
//	deliver.go    the rows, text and log lines that a worker produces
//	states.go     the directories for states of queues, which outlive a worker's process
//	output.go     the standard output and error of a worker
//	ending.go     why a worker ended
//	leave.go      the end of the task manager, for which its jobs go on elsewhere
//	notice.go     the command that says when the machine is about to be taken away
//
// # What workers may rely on
//
// Each worker is a separate process with its own process group and its own work directory,
// which is removed when the worker has ended. It inherits only environment variables that are
// known to hold no secrets, never a token. It uses as many processors as it has slots, and its
// heap limit is computed from its memory budget. The task manager always reads its standard
// output and error at once, so that writing output never makes a worker wait. Collected rows
// wait in the worker's pipe until the job manager accepts them.
//
// A worker may get the process that a worker of an earlier attempt of its job has kept (kept.go).
// It then has a work directory of its own, but the process is still in the first one, which is
// removed. The process itself sets its number of processors and its heap limit again, by the
// deployment.
//
// # What the job manager may rely on
//
// The events of a worker arrive in order and at least once. Events that may have been lost when
// a connection broke are sent again. If the job manager was restarted, all events of the workers
// that run are sent again, except progress. Ended is the last event. When Finished, Resolved,
// Committed or Ended arrives, the job manager has confirmed all earlier deliveries of the
// worker. The worker fails if the delivery of rows or text cannot be confirmed. It does not
// fail if the delivery of lines of its output cannot be confirmed. If a worker's process dies,
// is stopped, breaks the protocol, or does not behave as a worker after its start, the failure
// in Ended says so. If the worker keeps its process, Ended says so; the process holds no slots, is
// not listed, and what becomes of it is not reported.
//
// # When things go wrong
//
// Of the processes that a worker started, only those that left its process group can outlive
// the worker. No worker outlives the task manager. On Linux the kernel kills the workers when
// the thread that started them ends, and on every system a worker ends at EOF on its pipe.
// Workers are also killed when the lease lapses. It lapses a fixed time after the task manager
// sent the last heartbeat that the job manager acknowledged.
//
// A timeout for frames or acknowledgements counts only time in which the task manager's process
// ran and could have received them. So even under heavy load, no worker is considered dead
// while its frames wait to be read.
package taskmanager
