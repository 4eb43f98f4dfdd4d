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
//	A worker that is there to finish a commit goes from ready to committing at once.
//
//	A worker that fails, is cancelled or is told to exit before its work is done ends this way:
//
//	  something is under way ──► stopping ──it returned──► aborting ──► ended
//	  nothing is under way ──────────────────────────────► aborting ──► ended
//
//	A commit is not stopped: committing ──cancel──► sealing ──done──► ended.
type workerState uint8

const (
	// workerAwaiting: nothing is known yet.
	workerAwaiting workerState = iota
	// workerBuilding: the job is built, or resolved, and the data plane opened.
	workerBuilding
	// workerReady: the other workers may be told its address.
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
	// workerSealing: as workerCommitting, but the worker ends after it.
	workerSealing
	workerCommitted
	// workerStopping: the work that is under way was told to end.
	workerStopping
	// workerAborting: the sinks remove what they wrote.
	workerAborting
	// workerEnded: nothing is left but to end the process.
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

// workerEvent is what a worker reacts to: a message of its task manager, or the end of a piece
// of work.
type workerEvent uint8

const (
	// hearDeploy to hearExit are messages of the task manager.
	hearDeploy workerEvent = iota
	hearPrepare
	hearStart
	hearCommit
	hearCancel
	hearExit
	// hearInvalid is any other message, or one that is not for this worker.
	hearInvalid
	// workDone: the work that was under way has succeeded.
	workDone
	// workResolved: building has succeeded in a worker that only resolves facts.
	workResolved
	// workFailed: the work that was under way has failed.
	workFailed
	// workUnsent: a message of the worker cannot be sent.
	workUnsent
	// workLate: work that was told to end did not end in time.
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

// workerAction is what a transition has the worker do.
type workerAction uint8

const (
	// doNothing is for events that come too late to matter.
	doNothing workerAction = iota
	// doRefuse fails the worker, as the message makes no sense in its state.
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
	// doEnd ends the worker, with an answer if there is one: what was resolved, what was
	// committed, or why it failed.
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

// busy reports whether work is under way, whose end will be an event.
func (s workerState) busy() bool {
	switch s {
	case workerBuilding, workerPreparing, workerRunning, workerCommitting, workerSealing, workerStopping, workerAborting:
		return true
	}
	return false
}

// ending reports whether the worker is ending, so that messages of the task manager change
// nothing.
func (s workerState) ending() bool {
	return s == workerStopping || s == workerAborting || s == workerEnded
}

// workerSteps are the transitions that are particular to a state. step decides the others.
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
		hearCommit:  {workerCommitting, doCommit}, // to finish a run whose workers are gone
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
		workUnsent: {workerEnded, doEnd}, // the results stay
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

// step returns the transition for an event.
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
	case e >= workDone: // of work that is not under way any more
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
