package core

// WorkerState is the state of a worker process, as far as its task manager has reported it.
type WorkerState int

const (
	// WorkerDeploying means that the task manager has got the command to start the worker.
	WorkerDeploying WorkerState = iota
	// WorkerReady means that the worker has built the job and listens for data connections.
	WorkerReady
	// WorkerPrepared means that the worker is worker 0 and has prepared the sinks.
	WorkerPrepared
	// WorkerRunning means that the worker has got the command to start its subtasks.
	WorkerRunning
	// WorkerFinished means that the worker's subtasks have succeeded.
	WorkerFinished
	// WorkerCommitted means that the worker is worker 0 and has made the results visible.
	WorkerCommitted
	// WorkerResolved means that the worker, which was deployed only to resolve the graph, has
	// reported it.
	WorkerResolved
	// WorkerFailed means that the worker has reported why it failed, and will end.
	WorkerFailed
	// WorkerEnded means that the worker's process has ended. This state is final.
	WorkerEnded
	// WorkerLost means that the worker's task manager is lost or has left, and that the
	// worker's process has ended as far as the core can know. This state is final.
	WorkerLost
)

var workerStates = [...]string{"deploying", "ready", "prepared", "running", "finished", "committed", "resolved", "failed", "ended", "lost"}

// String returns the name of the state.
func (s WorkerState) String() string { return workerStates[s] }

// Gone reports whether the process has ended or is lost.
func (s WorkerState) Gone() bool { return s >= WorkerEnded }

// workerEvent moves a worker from one state to the next: a report of the worker, a command to
// it, or its end.
type workerEvent int

const (
	saidReady workerEvent = iota
	saidResolved
	saidPrepared
	toldStart
	saidFinished
	saidCommitted
	saidFailed
	processEnded
	managerLost
)

var workerEvents = [...]string{"ready", "resolved", "prepared", "start", "finished", "committed", "failed", "ended", "lost"}

// String returns the name of the event.
func (e workerEvent) String() string { return workerEvents[e] }

// workerTable has the state transitions of a worker.
//
//	           ready         prepared            start           finished            committed
//	deploying ──────► ready ──────────► prepared ─────► running ──────────► finished ──────────► committed
//	    │               ├─────────────── start ────────────▲                       ▲
//	    │               └─────────────── committed (CommitMode) ───────────────────┘
//	    │ resolved
//	    └─────────► resolved
//
//	any of these ── failed ──► failed
//	any of these, and failed ── ended ──► ended
//	any of these, and failed ── lost ───► lost
//
// A command to end (Cancel, Exit, Kill) does not change the state, because the worker may still
// report any event until the command arrives. Ended and lost are final.
var workerTable = table[WorkerState, workerEvent]{
	WorkerDeploying: {
		saidReady: WorkerReady, saidResolved: WorkerResolved,
		saidFailed: WorkerFailed, processEnded: WorkerEnded, managerLost: WorkerLost,
	},
	WorkerReady: {
		saidPrepared: WorkerPrepared, toldStart: WorkerRunning,
		saidCommitted: WorkerCommitted, // only in CommitMode
		saidFailed:    WorkerFailed, processEnded: WorkerEnded, managerLost: WorkerLost,
	},
	WorkerPrepared: {
		toldStart:  WorkerRunning,
		saidFailed: WorkerFailed, processEnded: WorkerEnded, managerLost: WorkerLost,
	},
	WorkerRunning: {
		saidFinished: WorkerFinished,
		saidFailed:   WorkerFailed, processEnded: WorkerEnded, managerLost: WorkerLost,
	},
	WorkerFinished: {
		saidCommitted: WorkerCommitted,
		saidFailed:    WorkerFailed, processEnded: WorkerEnded, managerLost: WorkerLost,
	},
	WorkerCommitted: {saidFailed: WorkerFailed, processEnded: WorkerEnded, managerLost: WorkerLost},
	WorkerResolved:  {saidFailed: WorkerFailed, processEnded: WorkerEnded, managerLost: WorkerLost},
	WorkerFailed:    {processEnded: WorkerEnded, managerLost: WorkerLost},
}

// repeats reports whether event e is a repeated report for a worker in state s. A task manager
// that reconnects sends again the reports that may have been lost.
func (e workerEvent) repeats(s WorkerState) bool {
	switch e {
	case saidReady:
		return s != WorkerDeploying
	case saidResolved:
		return s == WorkerResolved || s >= WorkerFailed
	case saidPrepared:
		return s >= WorkerPrepared
	case saidFinished:
		return s >= WorkerFinished
	case saidCommitted:
		return s >= WorkerCommitted
	default:
		return s >= WorkerFailed
	}
}
