package core

import "github.com/superstep-ml/superstep/internal/wire"

// jobEvent is what moves a job from one state to the next.
type jobEvent int

const (
	jobResolved  jobEvent = iota // its graph is complete and compiled
	jobPlaced                    // it has its slots
	jobStarted                   // all workers were ready, and told to start
	jobCommits                   // all workers have finished
	jobOrphaned                  // the worker that made its results visible is lost
	jobCommitted                 // its results are visible
	jobFails                     // something of it failed
	jobCancels                   // someone asked for its end
	jobEmptied                   // the last of its workers is gone
)

var jobEvents = [...]string{"resolved", "placed", "started", "commits", "orphaned", "committed", "fails", "cancels", "emptied"}

// String returns the event in lower case.
func (e jobEvent) String() string { return jobEvents[e] }

// jobTable is the life of a job.
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
// A job that fails or is cancelled stays in failing or cancelling until all its workers are
// gone, so that a job in failed or cancelled holds no slots. The first event decides: a failure
// of a cancelling job, or a cancellation of a failing one, changes nothing. A cancellation
// waits for a commit that has begun, for a while (cancelAsked). Finished, failed and cancelled
// are for good.
//
// A job whose worker 0 is lost while it commits stays in that state and waits there for
// another worker, which finishes the commit; so does one that was committing when the
// job manager stopped and starts again (resume.go).
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
	},
	wire.JobRunning: {
		jobCommits: wire.JobCommitting,
		jobFails:   wire.JobFailing,
		jobCancels: wire.JobCancelling,
	},
	wire.JobCommitting: {
		jobOrphaned:  wire.JobCommitting,
		jobCommitted: wire.JobFinished,
		jobFails:     wire.JobFailing,
		jobCancels:   wire.JobCancelling,
	},
	wire.JobFailing:    {jobEmptied: wire.JobFailed},
	wire.JobCancelling: {jobEmptied: wire.JobCancelled},
}
