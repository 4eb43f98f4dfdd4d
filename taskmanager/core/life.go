package core

import "fmt"

// This file defines the states of a worker in its task manager, and their transition table. For
// each state and trigger the table has the next state and an action. The task manager detects the
// triggers and carries out the actions.
//
//	fetching ──fetched──► starting ──first frame──► building ──Ready──► idle
//	                                                                  │      │
//	                               preparing ◄──────────Prepare───────┘      │
//	                                   │ Prepared                            │ Start
//	                                   ▼                                     ▼
//	                               prepared ───────────Start───────────► running
//	                                                                         │ Finished
//	                      committed ◄──Committed── committing ◄──Commit──── done, idle
//
//	fetching ──a kept process is there──► building
//	starting … committed ──Cancel──► cancelling
//	starting … cancelling ──Failed──► failed ──Kept──► gone
//	starting … failed ──Exit──► leaving;   starting, building ──Resolved──► leaving
//	committing ──Exit──► finishingCommit ──Committed, Failed──► leaving
//	starting … leaving ──Kill, silence, misuse, the task manager stops──► killed
//	starting … killed ──the process has ended──► gone
//	fetching ──no artifact──► gone;   fetching ──Cancel, Exit, Kill, stop──► killed
//
// A worker is killed if it sends nothing after its start, if it does not end after the command
// to end, or if it is silent for too long. gone is the final state. The transitions to gone
// report Ended, and no other transitions do. Upon Kept the worker is gone, but its process waits for
// the next attempt of its job.

// State is the state of a worker.
type State uint8

const (
	Fetching        State = iota // the artifact is being fetched
	Starting                     // the process runs, and has sent no frame yet
	Building                     // the process has sent a frame, so it behaves as a worker; it builds its job
	Idle                         // the worker listens for data connections, and waits for a command
	Preparing                    // the worker begins the sinks
	Prepared                     // the worker has begun the sinks, and waits for Start
	Running                      // the worker runs its subtasks
	Done                         // the worker's subtasks have succeeded
	Committing                   // the worker makes the results visible
	Committed                    // the results are visible
	Cancelling                   // the worker got the command to cancel its subtasks and end
	FinishingCommit              // the worker got the command to end while it committed; it finishes the commit first
	Failed                       // the worker has said why it failed; it is about to end, or to say Kept
	Leaving                      // the worker is about to end without another command
	Killed                       // the process was killed or the fetch was cancelled, and has not ended yet
	Gone                         // final: the process and goroutines have ended, and the files are removed
	States          = iota
)

var stateNames = [States]string{"fetching", "starting", "building", "idle", "preparing", "prepared", "running", "done", "committing", "committed", "cancelling", "finishing commit", "failed", "leaving", "killed", "gone"}

// String returns the name of the state.
func (s State) String() string {
	if int(s) >= len(stateNames) {
		return fmt.Sprintf("state(%d)", uint8(s))
	}
	return stateNames[s]
}

// Trigger is an event in the life of a worker that may change its state.
type Trigger uint8

const (
	// Triggers from the artifact and the process.
	Fetched   Trigger = iota // the artifact is in the cache
	Handed                   // there is a process that an earlier attempt of the job has kept
	Unstarted                // the artifact could not be fetched, the process not started, or its directory not made
	Exited                   // the process has ended, and all its frames were read

	// Triggers from frames of the worker.
	SaidBeat
	SaidReady
	SaidResolved
	SaidPrepared
	SaidProgress
	SaidCheckpointed
	SaidSaved
	SaidBulk // a frame Collected or Output
	SaidFinished
	SaidCommitted
	SaidFailed
	SaidKept
	SaidGarbage // an invalid frame, or a frame that does not belong to this worker's mode

	// Triggers from commands of the job manager.
	ToldPrepare
	ToldStart
	ToldCommit
	ToldSave
	ToldCancel
	ToldExit
	ToldKill

	// Triggers that the task manager itself detects.
	RanOut        // the time limit of the state has passed
	SilentTooLong // no frame for too long
	Undeliverable // rows or text of the worker cannot be delivered to the job manager
	Stopped       // the task manager stops, or the lease has lapsed

	Triggers = iota
)

var triggerNames = [Triggers]string{"fetched", "handed", "unstarted", "exited", "beat", "ready", "resolved", "prepared", "progress", "checkpointed", "saved", "bulk", "finished", "committed", "failed", "kept", "garbage", "prepare", "start", "commit", "save", "cancel", "exit", "kill", "ran out", "silent", "undeliverable", "stopped"}

// String returns a short description of the trigger.
func (h Trigger) String() string {
	if int(h) >= len(triggerNames) {
		return fmt.Sprintf("trigger(%d)", uint8(h))
	}
	return triggerNames[h]
}

// Action is what the task manager does upon a trigger.
type Action uint8

const (
	None     Action = iota
	Launch          // start the process and send it its deployment
	Redeploy        // send the deployment to the process that an earlier attempt has kept
	Relay           // pass the command on to the worker
	Ask             // pass the command on to the worker, or refuse it if too many wait; it may come any number of times
	Report          // pass the frame on to the job manager
	Deliver         // send the rows or text to the job manager
	Drop            // relay, and drop all rows and text, which are not needed any more
	GiveUp          // cancel the fetch
	Kill            // kill the process; the task manager says why
	Keep            // keep the process for the next attempt, and report that the worker has ended
	End             // report that the worker has ended
	actions  = iota
)

var actionNames = [actions]string{"-", "launch", "redeploy", "relay", "ask", "report", "deliver", "relay+drop", "give up", "kill", "keep", "end"}

// String returns a short description of the action.
func (a Action) String() string {
	if int(a) >= len(actionNames) {
		return fmt.Sprintf("action(%d)", uint8(a))
	}
	return actionNames[a]
}

// Move is the next state and the action upon a trigger.
type Move struct {
	To State
	Do Action
}

// LifeTable returns the transition table. A trigger that no call of set or stay mentions for a
// state changes nothing in that state. Such triggers are late or repeated commands, and frames
// that the worker sent before it received a command. Commands are repeated when the job manager
// sends them again on a new connection.
func LifeTable() (t [States][Triggers]Move) {
	for s := range t {
		for h := range t[s] {
			t[s][h] = Move{State(s), None}
		}
	}
	set := func(h Trigger, do Action, to State, from ...State) {
		for _, s := range from {
			t[s][h] = Move{to, do}
		}
	}
	stay := func(h Trigger, do Action, in ...State) {
		for _, s := range in {
			t[s][h] = Move{s, do}
		}
	}
	silent := []State{Starting, Building}
	working := []State{Idle, Preparing, Prepared, Running, Done, Committing, Committed}
	active := append(append([]State{}, silent...), working...) // the process runs and got no command to end
	alive := append(append([]State{}, active...), Cancelling)

	set(Fetched, Launch, Starting, Fetching)
	set(Fetched, End, Gone, Killed)
	set(Handed, Redeploy, Building, Fetching)
	set(Unstarted, End, Gone, Fetching, Starting, Killed)
	set(Unstarted, Kill, Killed, Building) // a process that was handed over
	ending := append(append([]State{}, alive...), FinishingCommit, Failed, Leaving)

	set(Exited, End, Gone, append(ending, Killed)...)

	// Frames. A frame that is not expected in the state is a breach of the protocol.
	for _, h := range []Trigger{SaidReady, SaidResolved, SaidPrepared, SaidFinished, SaidCommitted} {
		set(h, Kill, Killed, active...)
	}
	set(SaidKept, Kill, Killed, alive...)
	set(SaidGarbage, Kill, Killed, alive...)
	set(SaidBeat, None, Building, Starting)
	set(SaidProgress, None, Building, Starting)
	set(SaidCheckpointed, None, Building, Starting)
	set(SaidBulk, Deliver, Building, Starting)
	set(SaidReady, Report, Idle, silent...)
	set(SaidResolved, Report, Leaving, silent...)
	set(SaidPrepared, Report, Prepared, Preparing)
	set(SaidFinished, Report, Done, Running)
	set(SaidCommitted, Report, Committed, Committing)
	set(SaidFailed, Report, Failed, alive...)
	set(SaidKept, Keep, Gone, Failed)
	stay(SaidProgress, Report, Running)
	stay(SaidCheckpointed, Report, Running, Cancelling) // another attempt may continue from the last checkpoint
	stay(SaidSaved, Report, Running, Done)
	set(SaidCommitted, Report, Leaving, FinishingCommit)
	set(SaidFailed, Report, Leaving, FinishingCommit)
	stay(SaidBulk, Deliver, Building)
	stay(SaidBulk, Deliver, working...)
	// Frames that the worker sent before it received Cancel are still true, so they are passed
	// on to the job manager.
	for _, h := range []Trigger{SaidReady, SaidPrepared, SaidFinished, SaidCommitted} {
		stay(h, Report, Cancelling)
	}

	// Commands. A command that comes too early is a fault of the job manager. The worker is
	// then killed, because otherwise it would wait for ever.
	for _, h := range []Trigger{ToldPrepare, ToldStart, ToldCommit} {
		set(h, GiveUp, Killed, Fetching)
		set(h, Kill, Killed, silent...)
	}
	set(ToldPrepare, Relay, Preparing, Idle)
	set(ToldStart, Relay, Running, Idle, Prepared)
	set(ToldCommit, Relay, Committing, Done, Idle) // a worker in CommitMode commits in state idle
	set(ToldStart, Kill, Killed, Preparing)
	set(ToldCommit, Kill, Killed, Preparing, Prepared, Running)
	stay(ToldSave, Ask, Running)
	set(ToldCancel, Drop, Cancelling, active...)
	set(ToldExit, Relay, Leaving, append(alive, Failed)...)
	set(ToldExit, Relay, FinishingCommit, Committing)
	for _, h := range []Trigger{ToldCancel, ToldExit, ToldKill, Stopped} {
		set(h, GiveUp, Killed, Fetching)
	}

	set(ToldKill, Kill, Killed, ending...)
	set(Stopped, Kill, Killed, ending...)
	set(SilentTooLong, Kill, Killed, alive...)
	set(Undeliverable, Kill, Killed, active...)
	set(RanOut, Kill, Killed, Starting, Cancelling, FinishingCommit, Failed, Leaving)
	return t
}
