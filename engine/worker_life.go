package engine

import "fmt"

// workerState is the state of a worker.
//
//	awaiting ──deploy──► building ──resolved──────────────────────────────────► ended
//	                        │ done
//	                        ▼
//	                      ready ──────────start──────────┐
//	                        │ prepare                    ▼
//	                        └──► preparing ──► prepared ──start──► running
//	                                                                 │ done
//	                                                                 ▼
//	       ended ◄──exit── committed ◄──done── committing ◄──commit── finished ──exit──► ended
//
//	A worker that is only to finish a commit goes from ready to committing at once.
//
//	A worker that fails, is cancelled or is told to exit before its work is done ends this way:
//
//	  work is under way ──► stopping ──the work has ended──► aborting ──► ended
//	  no work is under way ────────────────────────────────► aborting ──► ended
//
//	A commit is not stopped: committing ──cancel──► sealing ──done──► ended.
type workerState uint8

const (
	// workerAwaiting: the worker has not yet received a deployment.
	workerAwaiting workerState = iota
	// workerBuilding: the worker builds the job and opens the data plane, or resolves facts.
	workerBuilding
	// workerReady: the data plane is open, and other workers may connect to it.
	workerReady
	// workerPreparing: the sinks begin; worker 0 only.
	workerPreparing
	workerPrepared
	// workerRunning: the subtasks run.
	workerRunning
	// workerFinished: all subtasks of this worker have succeeded.
	workerFinished
	// workerCommitting: the results become visible; worker 0 only.
	workerCommitting
	// workerSealing: the results become visible, and the worker then ends; worker 0 only.
	workerSealing
	workerCommitted
	// workerStopping: the work that is under way was told to end.
	workerStopping
	// workerAborting: the sinks remove what they wrote.
	workerAborting
	// workerEnded: the process only has to end.
	workerEnded

	workerStates = int(workerEnded) + 1
)

var workerStateNames = [workerStates]string{"awaiting", "building", "ready", "preparing", "prepared", "running", "finished", "committing", "sealing", "committed", "stopping", "aborting", "ended"}

// String returns the state in lower case.
func (s workerState) String() string {
	if int(s) < len(workerStateNames) {
		return workerStateNames[s]
	}
	return fmt.Sprintf("workerState(%d)", s)
}

// workerEvent is an event to which a worker reacts: a message of its task manager, or the end of
// a piece of work.
type workerEvent uint8

const (
	// hearDeploy to hearExit are messages of the task manager.
	hearDeploy workerEvent = iota
	hearPrepare
	hearStart
	hearCommit
	hearCancel
	hearExit
	// hearInvalid is any other message, or a message that is not for this worker.
	hearInvalid
	// workDone: the work that was under way has succeeded.
	workDone
	// workResolved: building has succeeded in a worker that only resolves facts.
	workResolved
	// workFailed: the work that was under way has failed.
	workFailed
	// workUnsent: a message of the worker cannot be sent.
	workUnsent
	// workLate: work that was told to end has not ended in time.
	workLate

	workerEvents = int(workLate) + 1
)

var workerEventNames = [workerEvents]string{"deploy", "prepare", "start", "commit", "cancel", "exit", "invalid", "done", "resolved", "failed", "unsent", "late"}

// String returns the event in lower case.
func (e workerEvent) String() string {
	if int(e) < len(workerEventNames) {
		return workerEventNames[e]
	}
	return fmt.Sprintf("workerEvent(%d)", e)
}

// workerAction is what a worker does in a transition.
type workerAction uint8

const (
	// doNothing is for events that come too late to matter.
	doNothing workerAction = iota
	// doRefuse makes the worker fail, as the message is not valid in its state.
	doRefuse
	// doBuild to doAbort begin a piece of work.
	doBuild
	doPrepare
	doRun
	doCommit
	doAbort
	// doStop tells the work that is under way to end.
	doStop
	// doAnswer sends the outcome of the work to the task manager.
	doAnswer
	// doEnd ends the worker. Its last message, if there is one, says what was resolved, that the
	// results are committed, or why the worker failed.
	doEnd
)

var workerActionNames = [...]string{"nothing", "refuse", "build", "prepare", "run", "commit", "abort", "stop", "answer", "end"}

// String returns the action in lower case.
func (a workerAction) String() string {
	if int(a) < len(workerActionNames) {
		return workerActionNames[a]
	}
	return fmt.Sprintf("workerAction(%d)", a)
}

// workerStep is a transition.
type workerStep struct {
	to workerState
	do workerAction
}

// busy reports whether work is under way. The end of that work will be an event.
func (s workerState) busy() bool {
	switch s {
	case workerBuilding, workerPreparing, workerRunning, workerCommitting, workerSealing, workerStopping, workerAborting:
		return true
	}
	return false
}

// ending reports whether the worker is ending. Messages of the task manager then have no effect.
func (s workerState) ending() bool {
	return s == workerStopping || s == workerAborting || s == workerEnded
}

// workerSteps has the transitions that are specific to a state. The method step has the other
// transitions.
var workerSteps = map[workerState]map[workerEvent]workerStep{
	workerAwaiting: {
		hearDeploy: {workerBuilding, doBuild},
	},
	workerBuilding: {
		workDone:     {workerReady, doAnswer},
		workResolved: {workerEnded, doEnd},
	},
	workerReady: {
		hearPrepare: {workerPreparing, doPrepare},
		hearStart:   {workerRunning, doRun},
		hearCommit:  {workerCommitting, doCommit}, // in a worker that only finishes a commit
	},
	workerPreparing: {
		workDone: {workerPrepared, doAnswer},
	},
	workerPrepared: {
		hearStart: {workerRunning, doRun},
	},
	workerRunning: {
		workDone: {workerFinished, doAnswer},
	},
	workerFinished: {
		hearCommit: {workerCommitting, doCommit},
		hearExit:   {workerEnded, doEnd},
	},
	workerCommitting: {
		workDone:   {workerCommitted, doAnswer},
		hearCancel: {workerSealing, doNothing},
		hearExit:   {workerSealing, doNothing},
		workUnsent: {workerSealing, doNothing},
	},
	workerSealing: {
		workDone:   {workerEnded, doEnd},
		hearCancel: {workerSealing, doNothing},
		hearExit:   {workerSealing, doNothing},
		workUnsent: {workerSealing, doNothing},
	},
	workerCommitted: {
		hearCancel: {workerEnded, doEnd},
		hearExit:   {workerEnded, doEnd},
		workUnsent: {workerEnded, doEnd}, // the results remain visible
	},
	workerStopping: {
		workDone:     {workerAborting, doAbort},
		workResolved: {workerAborting, doAbort},
		workFailed:   {workerAborting, doAbort},
		workLate:     {workerEnded, doEnd},
	},
	workerAborting: {
		workDone:   {workerEnded, doEnd},
		workFailed: {workerEnded, doEnd},
		workLate:   {workerEnded, doEnd},
	},
}

// step returns the transition of state s for event e.
func (s workerState) step(e workerEvent) workerStep {
	if step, ok := workerSteps[s][e]; ok {
		return step
	}
	switch {
	case s.ending():
		return workerStep{s, doNothing}
	case e == hearCancel || e == hearExit || e == workUnsent:
		return s.halt()
	case e == workFailed && s.busy():
		return workerStep{workerAborting, doAbort}
	case e >= workDone: // an event of work that is not under way any more
		return workerStep{s, doNothing}
	case s == workerCommitting || s == workerSealing:
		return workerStep{workerSealing, doRefuse}
	}
	return workerStep{s.halt().to, doRefuse}
}

// halt returns the transition that ends a worker before its work is done.
func (s workerState) halt() workerStep {
	switch {
	case s == workerAwaiting:
		return workerStep{workerEnded, doEnd}
	case s.busy():
		return workerStep{workerStopping, doStop}
	}
	return workerStep{workerAborting, doAbort}
}
