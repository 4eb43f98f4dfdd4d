package engine

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/engine/task"
)

// PanicError is a panic of user code: of an operator's or queue's functions while
// the job ran, or of the job's function, a hook or OnProgress.
type PanicError = task.PanicError

// errGoexit is the error of a function that ended its goroutine.
var errGoexit = errors.New("the function ended its goroutine (runtime.Goexit, or t.FailNow of a test)")

// guarded calls a user function and turns a panic or runtime.Goexit in it into an error. The
// function runs on its own goroutine, as Goexit cannot be stopped: on the main goroutine it
// would leave the process without one.
func guarded(f func() error) error {
	failed := make(chan error, 1)
	go func() {
		err, returned := error(nil), false
		defer func() {
			if !returned {
				err = escaped(recover())
			}
			failed <- err
		}()
		err = f()
		returned = true
	}()
	return <-failed
}

// escaped returns the error of a function that ended without returning. v is the recovered
// value, nil for Goexit. The deferred function that recovered calls it, while the panic's
// frames are still on the stack.
func escaped(v any) error {
	switch v := v.(type) {
	case nil:
		return errGoexit
	case Misuse: // such as from Collect, which has no builder to record it with
		if v.Site == "" {
			v.Site = userSite()
		}
		return v
	}
	return &PanicError{Value: v, Frames: panicFrames()}
}

// maxPanicFrames is the number of calls kept of a panic's stack: enough to reach
// from the fault to the user's function.
const maxPanicFrames = 10

// panicFrames returns the innermost calls, beginning with the one that panicked.
func panicFrames() []string {
	pcs := make([]uintptr, 64)
	pcs = pcs[:runtime.Callers(2, pcs)]
	var calls []string
	panicked := false
	for frames, more := runtime.CallersFrames(pcs), true; more && len(calls) < maxPanicFrames; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			// runtime.gopanic, and what signals below it, stand between the deferred
			// calls and those that panicked.
			panicked = true
		case panicked:
			calls = append(calls, fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line))
		}
	}
	return slices.Clip(calls)
}
