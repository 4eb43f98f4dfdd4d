package taskmanager

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Exit is how a process ended.
type Exit struct {
	Code   int    // -1 if it was a signal
	Signal string // such as "killed", "" if none
	// OutOfMemory says that the kernel is known to have killed it for lack of memory.
	OutOfMemory bool
}

// ending describes a process that ended although nobody killed it.
type ending struct {
	exit  Exit
	in    state    // state in which it ended
	crash []string // output of the Go runtime about the crash
	own   bool     // the executable is the task manager's own
}

// failure says why the process ended, nil if it ended as it was told.
func (e ending) failure() *wire.Failure {
	if e.asOrdered() {
		return nil
	}
	kind, message := e.cause()
	return &wire.Failure{Kind: kind, Message: message}
}

// asOrdered reports whether the worker ended in the way of one that was told to end, or that had
// reported why it must end.
func (e ending) asOrdered() bool {
	return (e.in == leaving || e.in == finishingCommit || e.in == cancelling) && e.exit.Signal == "" && e.exit.Code <= 1
}

func (e ending) cause() (wire.FailureKind, string) {
	switch {
	case len(e.crash) > 0 && (e.exit.Code == 2 || e.exit.Signal != ""):
		return wire.UserFailure, firstFrames(e.crash)
	case e.exit.OutOfMemory:
		return wire.LostFailure, "killed by the kernel for lack of memory: give it more, or use fewer slots for as much data"
	case e.exit.Signal == "killed":
		return wire.LostFailure, "killed by signal: killed; perhaps out of memory"
	case faults(e.exit.Signal) && e.in == starting && !e.own:
		return wire.MisuseFailure, fmt.Sprintf("the executable was killed by signal: %s, before it sent anything as a worker: it is damaged, or %s", e.exit.Signal, notOurs)
	case faults(e.exit.Signal):
		return wire.UserFailure, "killed by signal: " + e.exit.Signal
	case e.exit.Signal != "":
		return wire.LostFailure, "killed by signal: " + e.exit.Signal
	case e.in == starting && e.own:
		return wire.ClusterFailure, fmt.Sprintf("the task manager's own executable ended with code %d instead of becoming a worker", e.exit.Code)
	case e.in == starting:
		return wire.MisuseFailure, fmt.Sprintf("the executable ended with code %d before it sent anything as a worker: %s", e.exit.Code, notOurs)
	}
	return wire.UserFailure, fmt.Sprintf("user code ended the process (os.Exit) with code %d", e.exit.Code)
}

// notOurs explains an executable that does not act as a worker.
const notOurs = "it is no Superstep program, or its main does not call engine.Main or engine.WorkerMain before anything else"

// faults reports whether a signal is caused by the program itself.
func faults(signal string) bool {
	switch signal {
	case "segmentation fault", "bus error", "aborted", "abort trap", "illegal instruction", "floating point exception", "trace/breakpoint trap", "bad system call":
		return true
	}
	return false
}

// maxFrames bounds the lines of a stack in a message.
const maxFrames = 14

// firstFrames returns a panic's text with the stack of the goroutine that panicked, as
// far as it helps.
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
