// Package core makes the decisions of the job manager: which task managers are alive, which job
// gets which slots, which commands its workers get and when, and why a job failed. Its
// decisions depend only on the events and times that are passed to it. It returns the actions
// to take as effects, and uses no goroutine, clock, lock, socket or log. The program around it,
// here called the shell, passes the events and performs the effects.
//
//	c := core.New(core.Config{...})
//	for event := range events {
//		for _, effect := range c.Step(now, event) {
//			... // send, persist, tell followers; in this order
//		}
//	}
//
// All times are from one monotonic clock with an arbitrary zero. Every wait is measured in the
// ticks that the core received (package internal/silence). So if the job manager was stopped or
// overloaded, that time is not counted as silence of others.
//
// # Who is who
//
// A taskManager represents a task manager from its registration until it is lost or leaves
// (taskmanager.go, taskmanagerstate.go). A job lives from its submission until it is forgotten
// (job.go, jobstate.go). A worker is one process of a job on one task manager (worker.go,
// workerstate.go). It holds slots of the task manager until its process has ended, even if the
// job has ended before. [Place] chooses slots (place.go), queue.go decides which waiting job
// may have them, and failure.go determines why a job failed.
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
