package core

import "github.com/superstep-ml/superstep/internal/wire"

// jobEvent is an event that moves a job from one state to the next.
type jobEvent int

const (
	jobResolved  jobEvent = iota // the job's graph is resolved and compiled
	jobPlaced                    // the job has its slots
	jobStarted                   // all workers were ready and have got the command to start
	jobCommits                   // all workers have finished
	jobOrphaned                  // the worker that had to commit is lost
	jobCommitted                 // the job's results are visible
	jobFails                     // a worker or another part of the job failed
	jobCancels                   // a cancellation was requested
	jobEmptied                   // the last worker of the job has ended
	jobLost                      // a worker was lost, and the job gets another attempt
	jobRestarts                  // no worker of the lost attempt is left, and the delay is over
)

var jobEvents = [...]string{"resolved", "placed", "started", "commits", "orphaned", "committed", "fails", "cancels", "emptied", "lost", "restarts"}

// String returns the name of the event.
func (e jobEvent) String() string { return jobEvents[e] }

// jobTable has the state transitions of a job.
//
//	                                                                             orphaned
//	                                                                              ┌────┐
//	            resolved           placed             started            commits  │    ▼  committed
//	resolving ──────────► waiting ────────► deploying ────────► running ────────► committing ──────────► finished
//	    │                    │                  │                  │                  │
//	    ├────────────────────┴──────── fails ───┴──────────────────┴──────────────────┤
//	    │                                                                             │
//	    │   failing ◄─────────────────────────────────────────────────────────────────┤
//	    │      └── emptied ──► failed                                                 │
//	    │   cancelling ◄────── cancels ───────────────────────────────────────────────┘
//	    │      └── emptied ──► cancelled
//	    └── a job whose graph has all its facts starts in waiting
//
//	deploying, running or failing ── lost ──► restarting ── restarts ──► waiting
//	restarting ── cancels ──► cancelling
//
// A job becomes restarting only if its restart strategy allows another attempt (restart.go). A
// failing job becomes restarting only while the core looks for the cause of the failure, and
// only if it was not committing before.
//
// A job that fails or is cancelled stays in failing or cancelling until all its workers have
// ended, so that a job in failed or cancelled holds no slots. A failure of a cancelling job, or
// a cancellation of a failing job, changes nothing. A cancellation waits for a limited time for
// the end of a commit that has begun (cancelAsked). Finished, failed and cancelled are final.
//
// If worker 0 is lost while a job is committing, the job stays in committing and waits for
// another worker, which finishes the commit. After a restart of the job manager, the same
// happens to a job that was committing when the job manager stopped (resume.go). Other jobs are
// in the state in which they are on record (adopt.go).
var jobTable = table[wire.JobState, jobEvent]{
	wire.JobResolving: {
		jobResolved: wire.JobWaiting,
		jobFails:    wire.JobFailing,
		jobCancels:  wire.JobCancelling,
	},
	wire.JobWaiting: {
		jobPlaced:  wire.JobDeploying,
		jobFails:   wire.JobFailing,
		jobCancels: wire.JobCancelling,
	},
	wire.JobDeploying: {
		jobStarted: wire.JobRunning,
		jobFails:   wire.JobFailing,
		jobCancels: wire.JobCancelling,
		jobLost:    wire.JobRestarting,
	},
	wire.JobRunning: {
		jobCommits: wire.JobCommitting,
		jobFails:   wire.JobFailing,
		jobCancels: wire.JobCancelling,
		jobLost:    wire.JobRestarting,
	},
	wire.JobCommitting: {
		jobOrphaned:  wire.JobCommitting,
		jobCommitted: wire.JobFinished,
		jobFails:     wire.JobFailing,
		jobCancels:   wire.JobCancelling,
	},
	wire.JobFailing:    {jobEmptied: wire.JobFailed, jobLost: wire.JobRestarting},
	wire.JobCancelling: {jobEmptied: wire.JobCancelled},
	wire.JobRestarting: {
		jobRestarts: wire.JobWaiting,
		jobCancels:  wire.JobCancelling,
	},
}
