package taskmanager

import "fmt"

// The life of a worker as its task manager sees it, as a table: in each state, what
// happens to a worker leads to a state and to something that is done. The shell
// (worker.go) tells what happens, and does what is to be done.
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
//	starting … committed ──Cancel──► cancelling
//	starting … cancelling ──Exit, Failed, Resolved──► leaving
//	committing ──Exit──► concluding ──Committed──► leaving
//	starting … leaving ──Kill, silence, misuse, the task manager stops──► killed
//	starting … killed ──the process is gone──► gone
//	fetching ──no artifact──► gone;   fetching ──Cancel, Exit, Kill, stop──► killed
//
// In each state a worker has so much patience: who says nothing after the start, does
// not end after it was told to, or is silent, is killed. gone is for good, and Ended
// is told on the way there and nowhere else.

// state is where a worker is in its life.
type state uint8

const (
	fetching   state = iota // the artifact is on its way
	starting                // the process runs, and has said nothing yet
	building                // it has spoken: it is a worker, and builds its job
	idle                    // it listens, and waits for what to do
	preparing               // it begins the sinks
	prepared                // it has begun them, and waits to start
	running                 // it runs its subtasks
	done                    // its subtasks have succeeded
	committing              // it makes the results visible
	committed               // they are
	cancelling              // it was told to stop
	concluding              // it was told to end while it committed, and finishes that first
	leaving                 // it is about to end by itself
	killed                  // it was killed, or its fetch given up; not gone yet
	gone                    // for good
	states     = iota
)

var stateNames = [states]string{"fetching", "starting", "building", "idle", "preparing", "prepared", "running", "done", "committing", "committed", "cancelling", "concluding", "leaving", "killed", "gone"}

// String returns the state in lower case.
func (s state) String() string {
	if int(s) >= len(stateNames) {
		return fmt.Sprintf("state(%d)", uint8(s))
	}
	return stateNames[s]
}

// trigger is what happens to a worker.
type trigger uint8

const (
	// Of the artifact and the process.
	fetched   trigger = iota // the artifact is there
	unstarted                // no artifact, or no process of it; there is none
	exited                   // the process is gone, and all it said was read

	// Frames of the worker.
	saidBeat
	saidReady
	saidResolved
	saidPrepared
	saidProgress
	saidBulk // Collected, Output
	saidFinished
	saidCommitted
	saidFailed
	saidGarbage // what is no frame, or not one of this worker's mode

	// Commands of the job manager.
	toldPrepare
	toldStart
	toldCommit
	toldCancel
	toldExit
	toldKill

	// What the task manager finds.
	ranOut        // of the patience of the state
	fellSilent    // no frame for too long
	undeliverable // what it produces cannot be brought to the job manager
	stopped       // the task manager stops, or its lease lapsed

	triggers = iota
)

var triggerNames = [triggers]string{"fetched", "unstarted", "exited", "beat", "ready", "resolved", "prepared", "progress", "bulk", "finished", "committed", "failed", "garbage", "prepare", "start", "commit", "cancel", "exit", "kill", "ran out", "silent", "undeliverable", "stopped"}

// String returns what happened in a word or two.
func (h trigger) String() string {
	if int(h) >= len(triggerNames) {
		return fmt.Sprintf("trigger(%d)", uint8(h))
	}
	return triggerNames[h]
}

// action is what is done about a trigger.
type action uint8

const (
	none    action = iota
	launch         // start the process and send it its deployment
	relay          // pass the command on to the worker
	report         // pass the frame on to the job manager
	deliver        // bring the rows or text to the job manager
	drop           // relay, and give up what is being delivered: nobody wants it
	giveUp         // the fetch
	kill           // the process, for the reason the shell knows
	end            // tell that the worker has ended
	actions = iota
)

var actionNames = [actions]string{"-", "launch", "relay", "report", "deliver", "relay+drop", "give up", "kill", "end"}

// String returns the action in a word or two.
func (a action) String() string {
	if int(a) >= len(actionNames) {
		return fmt.Sprintf("action(%d)", uint8(a))
	}
	return actionNames[a]
}

// move is where a trigger leads, and what is done.
type move struct {
	to state
	do action
}

// lifeTable is the transition table. What is not in a state's row changes nothing: late
// or repeated commands, and frames that crossed with a command. Commands may be
// repeated as the job manager says them again on a new connection.
func lifeTable() (t [states][triggers]move) {
	for s := range t {
		for h := range t[s] {
			t[s][h] = move{state(s), none}
		}
	}
	set := func(h trigger, do action, to state, from ...state) {
		for _, s := range from {
			t[s][h] = move{to, do}
		}
	}
	stay := func(h trigger, do action, in ...state) {
		for _, s := range in {
			t[s][h] = move{s, do}
		}
	}
	silent := []state{starting, building}
	working := []state{idle, preparing, prepared, running, done, committing, committed}
	active := append(append([]state{}, silent...), working...) // a process, of which nothing was asked but work
	alive := append(append([]state{}, active...), cancelling)

	set(fetched, launch, starting, fetching)
	set(fetched, end, gone, killed)
	set(unstarted, end, gone, fetching, starting, killed)
	ending := append(append([]state{}, alive...), concluding, leaving)

	set(exited, end, gone, append(ending, killed)...)

	// Frames. One that the state does not expect is a breach of the protocol.
	for _, h := range []trigger{saidReady, saidResolved, saidPrepared, saidFinished, saidCommitted} {
		set(h, kill, killed, active...)
	}
	set(saidGarbage, kill, killed, alive...)
	set(saidBeat, none, building, starting)
	set(saidProgress, none, building, starting)
	set(saidBulk, deliver, building, starting)
	set(saidReady, report, idle, silent...)
	set(saidResolved, report, leaving, silent...)
	set(saidPrepared, report, prepared, preparing)
	set(saidFinished, report, done, running)
	set(saidCommitted, report, committed, committing)
	set(saidFailed, report, leaving, alive...)
	stay(saidProgress, report, running)
	set(saidCommitted, report, leaving, concluding)
	set(saidFailed, report, leaving, concluding)
	stay(saidBulk, deliver, building)
	stay(saidBulk, deliver, working...)
	// What was done before a worker heard that it is cancelled stays true.
	for _, h := range []trigger{saidReady, saidPrepared, saidFinished, saidCommitted} {
		stay(h, report, cancelling)
	}

	// Commands. One that comes too early is a fault of the job manager, and had better
	// end the worker than leave it waiting.
	for _, h := range []trigger{toldPrepare, toldStart, toldCommit} {
		set(h, giveUp, killed, fetching)
		set(h, kill, killed, silent...)
	}
	set(toldPrepare, relay, preparing, idle)
	set(toldStart, relay, running, idle, prepared)
	set(toldCommit, relay, committing, done, idle) // idle: one that is there for that alone
	set(toldStart, kill, killed, preparing)
	set(toldCommit, kill, killed, preparing, prepared, running)
	set(toldCancel, drop, cancelling, active...)
	set(toldExit, relay, leaving, alive...)
	set(toldExit, relay, concluding, committing)
	for _, h := range []trigger{toldCancel, toldExit, toldKill, stopped} {
		set(h, giveUp, killed, fetching)
	}

	set(toldKill, kill, killed, ending...)
	set(stopped, kill, killed, ending...)
	set(fellSilent, kill, killed, alive...)
	set(undeliverable, kill, killed, active...)
	set(ranOut, kill, killed, starting, cancelling, concluding, leaving)
	return t
}
