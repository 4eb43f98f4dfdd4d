package taskmanager

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// Exit describes how a process ended.
type Exit struct {
	Code   int    // exit status; -1 if a signal ended the process
	Signal string // name of the signal that ended the process, such as "killed"; "" if no signal did
	// OutOfMemory is true if the kernel is known to have killed the process for lack of memory.
	OutOfMemory bool
}

// ending describes how a worker's process ended without being killed by the task manager.
type ending struct {
	exit  Exit
	in    core.State // state of the worker when the process ended
	crash []string   // lines that the Go runtime printed about the crash; nil if the process did not crash
	own   bool       // whether the executable is the task manager's own
}

// failure returns a failure that says why the process ended, or nil if it ended as expected.
func (e ending) failure() *wire.Failure {
	if e.asOrdered() {
		return nil
	}
	kind, message := e.cause()
	return &wire.Failure{Kind: kind, Message: message}
}

// asOrdered reports whether the process ended normally after the command to end, or after it
// had reported why it must end.
func (e ending) asOrdered() bool {
	return (e.in == core.Failed || e.in == core.Leaving || e.in == core.FinishingCommit || e.in == core.Cancelling) && e.exit.Signal == "" && e.exit.Code <= 1
}

func (e ending) cause() (wire.FailureKind, string) {
	switch {
	case len(e.crash) > 0 && (e.exit.Code == 2 || e.exit.Signal != ""):
		return wire.UserFailure, firstFrames(e.crash)
	case e.exit.OutOfMemory:
		return wire.LostFailure, "killed by the kernel for lack of memory: give it more, or use fewer slots for as much data"
	case e.exit.Signal == "killed":
		return wire.LostFailure, "killed by signal: killed; perhaps out of memory"
	case faults(e.exit.Signal) && e.in == core.Starting && !e.own:
		return wire.MisuseFailure, fmt.Sprintf("the executable was killed by signal: %s, before it sent anything as a worker: it is damaged, or %s", e.exit.Signal, notOurs)
	case faults(e.exit.Signal):
		return wire.UserFailure, "killed by signal: " + e.exit.Signal
	case e.exit.Signal != "":
		return wire.LostFailure, "killed by signal: " + e.exit.Signal
	case e.in == core.Starting && e.own:
		return wire.ClusterFailure, fmt.Sprintf("the task manager's own executable ended with code %d instead of becoming a worker", e.exit.Code)
	case e.in == core.Starting:
		return wire.MisuseFailure, fmt.Sprintf("the executable ended with code %d before it sent anything as a worker: %s", e.exit.Code, notOurs)
	}
	return wire.UserFailure, fmt.Sprintf("user code ended the process (os.Exit) with code %d", e.exit.Code)
}

// notOurs says why an executable may not behave as a worker.
const notOurs = "it is no Superstep program, or its main does not call engine.Main or engine.WorkerMain before anything else"

// faults reports whether a signal of this name is caused by a fault of the program that
// receives it.
func faults(signal string) bool {
	switch signal {
	case "segmentation fault", "bus error", "aborted", "abort trap", "illegal instruction", "floating point exception", "trace/breakpoint trap", "bad system call":
		return true
	}
	return false
}

// maxFrames bounds the number of lines of a panic's text and stack in a message.
const maxFrames = 14

// firstFrames returns at most maxFrames lines of crash: the text of a panic and the stack of
// the goroutine that panicked.
func firstFrames(crash []string) string {
	lines, inStack := 0, false
	for _, line := range crash {
		if inStack && line == "" || lines == maxFrames {
			break
		}
		inStack = inStack || strings.HasPrefix(line, "goroutine ")
		lines++
	}
	return strings.TrimRight(strings.Join(crash[:lines], "\n"), "\n")
}
