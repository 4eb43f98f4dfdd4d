package taskmanager

import "fmt"

// This file defines the states of a worker in its task manager, and their transition table. For
// each state and trigger the table has the next state and an action. worker.go detects the
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
// the next attempt of its job (kept.go).

// state is the state of a worker.
type state uint8

const (
	fetching        state = iota // the artifact is being fetched
	starting                     // the process runs, and has sent no frame yet
	building                     // the process has sent a frame, so it behaves as a worker; it builds its job
	idle                         // the worker listens for data connections, and waits for a command
	preparing                    // the worker begins the sinks
	prepared                     // the worker has begun the sinks, and waits for Start
	running                      // the worker runs its subtasks
	done                         // the worker's subtasks have succeeded
	committing                   // the worker makes the results visible
	committed                    // the results are visible
	cancelling                   // the worker got the command to cancel its subtasks and end
	finishingCommit              // the worker got the command to end while it committed; it finishes the commit first
	failed                       // the worker has said why it failed; it is about to end, or to say Kept
	leaving                      // the worker is about to end without another command
	killed                       // the process was killed or the fetch was cancelled, and has not ended yet
	gone                         // final: the process and goroutines have ended, and the files are removed
	states          = iota
)

var stateNames = [states]string{"fetching", "starting", "building", "idle", "preparing", "prepared", "running", "done", "committing", "committed", "cancelling", "finishing commit", "failed", "leaving", "killed", "gone"}

// String returns the name of the state.
func (s state) String() string {
	if int(s) >= len(stateNames) {
		return fmt.Sprintf("state(%d)", uint8(s))
	}
	return stateNames[s]
}

// trigger is an event in the life of a worker that may change its state.
type trigger uint8

const (
	// Triggers from the artifact and the process.
	fetched   trigger = iota // the artifact is in the cache
	handed                   // there is a process that an earlier attempt of the job has kept
	unstarted                // the artifact could not be fetched, the process not started, or its directory not made
	exited                   // the process has ended, and all its frames were read

	// Triggers from frames of the worker.
	saidBeat
	saidReady
	saidResolved
	saidPrepared
	saidProgress
	saidCheckpointed
	saidSaved
	saidBulk // a frame Collected or Output
	saidFinished
	saidCommitted
	saidFailed
	saidKept
	saidGarbage // an invalid frame, or a frame that does not belong to this worker's mode

	// Triggers from commands of the job manager.
	toldPrepare
	toldStart
	toldCommit
	toldSave
	toldCancel
	toldExit
	toldKill

	// Triggers that the task manager itself detects.
	ranOut        // the time limit of the state has passed
	silentTooLong // no frame for too long
	undeliverable // rows or text of the worker cannot be delivered to the job manager
	stopped       // the task manager stops, or the lease has lapsed

	triggers = iota
)

var triggerNames = [triggers]string{"fetched", "handed", "unstarted", "exited", "beat", "ready", "resolved", "prepared", "progress", "checkpointed", "saved", "bulk", "finished", "committed", "failed", "kept", "garbage", "prepare", "start", "commit", "save", "cancel", "exit", "kill", "ran out", "silent", "undeliverable", "stopped"}

// String returns a short description of the trigger.
func (h trigger) String() string {
	if int(h) >= len(triggerNames) {
		return fmt.Sprintf("trigger(%d)", uint8(h))
	}
	return triggerNames[h]
}

// action is what the task manager does upon a trigger.
type action uint8

const (
	none     action = iota
	launch          // start the process and send it its deployment
	redeploy        // send the deployment to the process that an earlier attempt has kept
	relay           // pass the command on to the worker
	ask             // pass the command on to the worker, or refuse it if too many wait; it may come any number of times
	report          // pass the frame on to the job manager
	deliver         // send the rows or text to the job manager
	drop            // relay, and drop all rows and text, which are not needed any more
	giveUp          // cancel the fetch
	kill            // kill the process; method reason in worker.go returns why
	keep            // keep the process for the next attempt, and report that the worker has ended
	end             // report that the worker has ended
	actions  = iota
)

var actionNames = [actions]string{"-", "launch", "redeploy", "relay", "ask", "report", "deliver", "relay+drop", "give up", "kill", "keep", "end"}

// String returns a short description of the action.
func (a action) String() string {
	if int(a) >= len(actionNames) {
		return fmt.Sprintf("action(%d)", uint8(a))
	}
	return actionNames[a]
}

// move is the next state and the action upon a trigger.
type move struct {
	to state
	do action
}

// lifeTable returns the transition table. A trigger that no call of set or stay mentions for a
// state changes nothing in that state. Such triggers are late or repeated commands, and frames
// that the worker sent before it received a command. Commands are repeated when the job manager
// sends them again on a new connection.
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
	active := append(append([]state{}, silent...), working...) // the process runs and got no command to end
	alive := append(append([]state{}, active...), cancelling)

	set(fetched, launch, starting, fetching)
	set(fetched, end, gone, killed)
	set(handed, redeploy, building, fetching)
	set(unstarted, end, gone, fetching, starting, killed)
	set(unstarted, kill, killed, building) // a process that was handed over
	ending := append(append([]state{}, alive...), finishingCommit, failed, leaving)

	set(exited, end, gone, append(ending, killed)...)

	// Frames. A frame that is not expected in the state is a breach of the protocol.
	for _, h := range []trigger{saidReady, saidResolved, saidPrepared, saidFinished, saidCommitted} {
		set(h, kill, killed, active...)
	}
	set(saidKept, kill, killed, alive...)
	set(saidGarbage, kill, killed, alive...)
	set(saidBeat, none, building, starting)
	set(saidProgress, none, building, starting)
	set(saidCheckpointed, none, building, starting)
	set(saidBulk, deliver, building, starting)
	set(saidReady, report, idle, silent...)
	set(saidResolved, report, leaving, silent...)
	set(saidPrepared, report, prepared, preparing)
	set(saidFinished, report, done, running)
	set(saidCommitted, report, committed, committing)
	set(saidFailed, report, failed, alive...)
	set(saidKept, keep, gone, failed)
	stay(saidProgress, report, running)
	stay(saidCheckpointed, report, running, cancelling) // another attempt may continue from the last checkpoint
	stay(saidSaved, report, running, done)
	set(saidCommitted, report, leaving, finishingCommit)
	set(saidFailed, report, leaving, finishingCommit)
	stay(saidBulk, deliver, building)
	stay(saidBulk, deliver, working...)
	// Frames that the worker sent before it received Cancel are still true, so they are passed
	// on to the job manager.
	for _, h := range []trigger{saidReady, saidPrepared, saidFinished, saidCommitted} {
		stay(h, report, cancelling)
	}

	// Commands. A command that comes too early is a fault of the job manager. The worker is
	// then killed, because otherwise it would wait for ever.
	for _, h := range []trigger{toldPrepare, toldStart, toldCommit} {
		set(h, giveUp, killed, fetching)
		set(h, kill, killed, silent...)
	}
	set(toldPrepare, relay, preparing, idle)
	set(toldStart, relay, running, idle, prepared)
	set(toldCommit, relay, committing, done, idle) // a worker in CommitMode commits in state idle
	set(toldStart, kill, killed, preparing)
	set(toldCommit, kill, killed, preparing, prepared, running)
	stay(toldSave, ask, running)
	set(toldCancel, drop, cancelling, active...)
	set(toldExit, relay, leaving, append(alive, failed)...)
	set(toldExit, relay, finishingCommit, committing)
	for _, h := range []trigger{toldCancel, toldExit, toldKill, stopped} {
		set(h, giveUp, killed, fetching)
	}

	set(toldKill, kill, killed, ending...)
	set(stopped, kill, killed, ending...)
	set(silentTooLong, kill, killed, alive...)
	set(undeliverable, kill, killed, active...)
	set(ranOut, kill, killed, starting, cancelling, finishingCommit, failed, leaving)
	return t
}
