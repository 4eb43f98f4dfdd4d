// Package core makes the decisions of the job manager: which task managers count as alive,
// which job gets which slots, which commands its workers get and when, and why a job failed.
// Its decisions depend only on the events and times that are passed to it. It returns the
// actions to take as effects, and uses no goroutine, clock, lock, socket or log. The program
// around it, here called the shell, passes the events and performs the effects.
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
//   - Attempts are numbered from 1. Every deployment of a job is an attempt: if a worker first
//     resolves the graph, that is attempt 1, and the run is attempt 2. A worker that finishes
//     the commit of a lost worker is a further attempt.
//   - Messages on a connection that is not registered are ignored. A report of an unknown
//     worker is answered with Kill.
//   - A broken connection has no effect on jobs if the task manager reconnects in time. Messages
//     in both directions may have been lost, so both sides send them again. The core sends
//     commands again when it compares a registration with its own state. The task manager sends,
//     for each of its workers, the last of Ready, Resolved, Prepared, Finished, Committed and
//     Failed again. Both sides ignore repeated messages.
//   - A task manager lists a worker as running from its Deploy, even while the executable is
//     still being fetched, until it has sent Ended.
package core
