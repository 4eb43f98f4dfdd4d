// Package core makes the decisions of the job manager: which task managers count as alive,
// which job gets which slots, when workers get which commands, and why a job failed. The
// decisions depend only on the events and times that are passed to the package. It returns the
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
// ticks that the core received (package internal/silence). So time in which the job manager was
// stopped or overloaded does not count as silence of task managers.
//
// # Who is who
//
// A taskManager represents a task manager from its registration until it is lost or leaves
// (taskmanager.go, taskmanagerstate.go). A job lives from its submission until it is forgotten
// (job.go, jobstate.go). A worker is one process of a job on one task manager (worker.go,
// workerstate.go). A worker holds slots of the task manager until its process has ended, even
// if the job ended earlier, or until it keeps its process for the next attempt (kept.go). [Place] chooses slots (place.go). priority.go has
// the order of the jobs that wait for them, and queue.go decides which of these may use them. recovery.go
// records the phases of a recovery. A client may keep new workers from a task manager (cordon.go) or make its jobs
// leave it (move.go), and a task manager may announce that it leaves (leave.go). Rows are copied before a job
// moves (precopy.go). Task managers on which workers die again and again are avoided (avoid.go). failure.go
// determines why a job failed, and restart.go whether a job that has lost a worker gets another attempt. savenow.go passes on requests for checkpoints. recover.go, adopt.go and resume.go
// take jobs up again after a restart of the job manager, by their records (continuation.go).
//
// # What a shell and a task manager must know
//
//   - Attempts are numbered from 1. Every deployment of a job is an attempt. If a worker first
//     resolves the graph, the resolution is attempt 1 and the run is attempt 2. The deployment
//     of a worker that finishes the commit of a lost worker is a further attempt. So is the
//     deployment of a job that was restarted. Workers of an earlier attempt may be left then, but
//     only on lost task managers, and they cannot disturb it (fence.go).
//   - Messages on a connection on which no task manager is registered are ignored. The answer
//     to a report of an unknown worker is Kill.
//   - An attempt is on record before its workers are deployed.
//   - A broken connection has no effect on jobs if the task manager reconnects in time. Messages
//     in both directions may have been lost, so both sides send them again. The core sends
//     commands again when it compares a registration with its own state. The task manager sends,
//     for each of its workers, those of Ready, Resolved, Prepared, Finished, Committed and Failed
//     again that were not acknowledged, or all of them if the job manager was restarted. Both
//     sides ignore repeated messages.
//   - A restart of the job manager is a broken connection of all task managers, for which the core
//     waits as long as their lease (adopt.go).
//   - A task manager lists a worker as running from the time at which it gets the worker's
//     Deploy, even while it fetches the executable, until it has sent Ended.
package core
