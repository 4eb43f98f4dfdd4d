// Package core makes the decisions of the job manager: which task managers are alive, which job
// gets which slots, what its workers are told and when, and why a job failed. It is a function
// of the events and times that it is given, and returns the actions to take; it has no
// goroutine, clock, lock, socket or log.
//
//	c := core.New(core.Config{...})
//	for event := range events {
//		for _, effect := range c.Step(now, event) {
//			... // send, persist, tell followers; in this order
//		}
//	}
//
// Times are those of one monotonic clock, counted from any zero. Every wait is measured in the
// ticks that the core was given (internal/silence), so that a job manager that was stopped or
// overloaded does not blame others for it.
//
// # Who is who
//
// A taskManager stands for a task manager from its registration to its end (taskmanager.go,
// taskmanagerstate.go). A job lives from its submission until it is forgotten (job.go,
// jobstate.go). A worker is one process of a job on one task manager (worker.go, workerstate.go).
// It holds slots of the task manager until its process is gone, whatever has become of the job.
// [Place] chooses slots (place.go), queue.go says whose turn it is, and failure.go finds why a job
// failed.
//
// # What a shell and a task manager must know
//
//   - Attempts are numbered from 1 and count all deployments of a job. If a worker first
//     resolves the graph, that is attempt 1 and the run is attempt 2. A commit that another
//     worker finishes is an attempt of its own, too.
//   - Messages on a connection that is not registered are ignored. A report of an unknown
//     worker is answered with Kill.
//   - A broken connection costs nothing if the task manager is back in time. Messages under way
//     in either direction may be lost, so both sides repeat them: the core when it compares a
//     registration with its own state, the task manager by repeating, for each worker that it
//     has, the last of Ready, Resolved, Prepared, Finished, Committed and Failed. Both sides
//     ignore repetitions.
//   - A task manager reports a worker as running from its Deploy, even while the executable is
//     still being fetched, until Ended was sent.
package core
