// Package workerlife decides what a worker process does: which message of its task manager it takes in
// which state, which work follows, and whether its process is kept for the next attempt of its job. It
// does none of the work itself.
//
//	event := workerlife.EventOf(state, message, deployment)
//	move := state.Step(event)                                // the next state, and what to do
package workerlife

import "fmt"

// State is the state of a worker.
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
type State uint8

const (
	// Awaiting: the worker has not yet received a deployment.
	Awaiting State = iota
	// Building: the worker builds the job and opens the data plane, or resolves facts.
	Building
	// Ready: the data plane is open, and other workers may connect to it.
	Ready
	// Preparing: the sinks begin; worker 0 only.
	Preparing
	Prepared
	// Running: the subtasks run.
	Running
	// Finished: all subtasks of this worker have succeeded.
	Finished
	// Committing: the results become visible; worker 0 only.
	Committing
	// Sealing: the results become visible, and the worker then ends; worker 0 only.
	Sealing
	Committed
	// Stopping: the work that is under way was told to end.
	Stopping
	// Aborting: the sinks remove what they wrote.
	Aborting
	// Ended: the process only has to end.
	Ended

	states = int(Ended) + 1
)

var stateNames = [states]string{"awaiting", "building", "ready", "preparing", "prepared", "running", "finished", "committing", "sealing", "committed", "stopping", "aborting", "ended"}

// String returns the state in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", s)
}

// Event is an event to which a worker reacts: a message of its task manager, or the end of
// a piece of work.
type Event uint8

const (
	// HearDeploy to HearExit are messages of the task manager.
	HearDeploy Event = iota
	HearPrepare
	HearStart
	HearCommit
	HearCancel
	HearExit
	// HearInvalid is any other message, or a message that is not for this worker.
	HearInvalid
	// WorkDone: the work that was under way has succeeded.
	WorkDone
	// WorkResolved: building has succeeded in a worker that only resolves facts.
	WorkResolved
	// WorkFailed: the work that was under way has failed.
	WorkFailed
	// WorkUnsent: a message of the worker cannot be sent.
	WorkUnsent
	// WorkLate: work that was told to end has not ended in time.
	WorkLate

	events = int(WorkLate) + 1
)

var eventNames = [events]string{"deploy", "prepare", "start", "commit", "cancel", "exit", "invalid", "done", "resolved", "failed", "unsent", "late"}

// String returns the event in lower case.
func (e Event) String() string {
	if int(e) < len(eventNames) {
		return eventNames[e]
	}
	return fmt.Sprintf("Event(%d)", e)
}

// Action is what a worker does in a transition.
type Action uint8

const (
	// DoNothing is for events that come too late to matter.
	DoNothing Action = iota
	// DoRefuse makes the worker fail, as the message is not valid in its state.
	DoRefuse
	// DoBuild to DoAbort begin a piece of work.
	DoBuild
	DoPrepare
	DoRun
	DoCommit
	DoAbort
	// DoStop tells the work that is under way to end.
	DoStop
	// DoAnswer sends the outcome of the work to the task manager.
	DoAnswer
	// DoEnd ends the worker. Its last message, if there is one, says what was resolved, that the
	// results are committed, or why the worker failed.
	DoEnd
)

var actionNames = [...]string{"nothing", "refuse", "build", "prepare", "run", "commit", "abort", "stop", "answer", "end"}

// String returns the action in lower case.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", a)
}

// Move is a transition.
type Move struct {
	To State
	Do Action
}

// Busy reports whether work is under way. The end of that work will be an event.
func (s State) Busy() bool {
	switch s {
	case Building, Preparing, Running, Committing, Sealing, Stopping, Aborting:
		return true
	}
	return false
}

// Ending reports whether the worker is ending. Messages of the task manager then have no effect.
func (s State) Ending() bool {
	return s == Stopping || s == Aborting || s == Ended
}

// moves has the transitions that are specific to a state. The method Step has the other
// transitions.
var moves = map[State]map[Event]Move{
	Awaiting: {
		HearDeploy: {Building, DoBuild},
	},
	Building: {
		WorkDone:     {Ready, DoAnswer},
		WorkResolved: {Ended, DoEnd},
	},
	Ready: {
		HearPrepare: {Preparing, DoPrepare},
		HearStart:   {Running, DoRun},
		HearCommit:  {Committing, DoCommit}, // in a worker that only finishes a commit
	},
	Preparing: {
		WorkDone: {Prepared, DoAnswer},
	},
	Prepared: {
		HearStart: {Running, DoRun},
	},
	Running: {
		WorkDone: {Finished, DoAnswer},
	},
	Finished: {
		HearCommit: {Committing, DoCommit},
		HearExit:   {Ended, DoEnd},
	},
	Committing: {
		WorkDone:   {Committed, DoAnswer},
		HearCancel: {Sealing, DoNothing},
		HearExit:   {Sealing, DoNothing},
		WorkUnsent: {Sealing, DoNothing},
	},
	Sealing: {
		WorkDone:   {Ended, DoEnd},
		HearCancel: {Sealing, DoNothing},
		HearExit:   {Sealing, DoNothing},
		WorkUnsent: {Sealing, DoNothing},
	},
	Committed: {
		HearCancel: {Ended, DoEnd},
		HearExit:   {Ended, DoEnd},
		WorkUnsent: {Ended, DoEnd}, // the results remain visible
	},
	Stopping: {
		WorkDone:     {Aborting, DoAbort},
		WorkResolved: {Aborting, DoAbort},
		WorkFailed:   {Aborting, DoAbort},
		WorkLate:     {Ended, DoEnd},
	},
	Aborting: {
		WorkDone:   {Ended, DoEnd},
		WorkFailed: {Ended, DoEnd},
		WorkLate:   {Ended, DoEnd},
	},
}

// Step returns the transition of state s for event e.
func (s State) Step(e Event) Move {
	if step, ok := moves[s][e]; ok {
		return step
	}
	switch {
	case s.Ending():
		return Move{s, DoNothing}
	case e == HearCancel || e == HearExit || e == WorkUnsent:
		return s.halt()
	case e == WorkFailed && s.Busy():
		return Move{Aborting, DoAbort}
	case e >= WorkDone: // an event of work that is not under way any more
		return Move{s, DoNothing}
	case s == Committing || s == Sealing:
		return Move{Sealing, DoRefuse}
	}
	return Move{s.halt().To, DoRefuse}
}

// halt returns the transition that ends a worker before its work is done.
func (s State) halt() Move {
	switch {
	case s == Awaiting:
		return Move{Ended, DoEnd}
	case s.Busy():
		return Move{Stopping, DoStop}
	}
	return Move{Aborting, DoAbort}
}
