// Package core decides for the job manager: which task managers there are and which
// of them live, which job gets which slots, what its workers are told and when, and
// why a job failed. It is a function of the events and times it is given, and returns
// what is to be done; no goroutine, clock, lock, socket or log call is in it.
//
//	c := core.New(core.Config{...})
//	for event := range events {
//		for _, effect := range c.Step(now, event) {
//			... // send, persist, tell followers; in this order
//		}
//	}
//
// Times are those of one monotonic clock, counted from any zero. Whatever is waited for
// is measured by the ticks that the core was given (internal/silence), so that a job
// manager that was stopped, or has too much to do, blames nobody else for it.
//
// # Who is who
//
// A taskManager stands for a task manager from its registration to its end (taskmanager.go, taskmanagerstate.go).
// A job lives from its submission until it is forgotten (job.go, jobstate.go). A worker
// is one process of a job on one task manager (worker.go, workerstate.go); it holds slots of
// the task manager until its process is gone, whatever has become of the job. [Place] chooses
// slots (place.go), queue.go says whose turn it is, failure.go what a job failed of.
//
// # What a shell and a task manager must know
//
//   - Attempts are numbered from 1 and count all deployments of a job: of one whose
//     graph is resolved first, the worker that does so is attempt 1, and the run is 2.
//     A commit that another worker finishes is an attempt of its own, too.
//   - Whatever is said on a connection that is not registered, any more or yet, is
//     ignored. A report of a worker that is not known is answered with Kill.
//   - A connection that breaks costs nothing if the task manager is back in time. What
//     was on its way in either direction may be lost, so both sides say again what the
//     other may not have heard: the core when it compares a registration with what it
//     knows, the task manager by repeating, of each worker that it has, the last of
//     Ready, Resolved, Prepared, Finished, Committed and Failed. What was heard before
//     is ignored, on both sides.
//   - A worker is among those that a task manager says it runs from the moment of its
//     Deploy, while its executable is still being fetched, until Ended was sent.
package core
