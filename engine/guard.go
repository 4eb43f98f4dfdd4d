package engine

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/engine/task"
)

// PanicError is the error of a panic of user code: in a function of an operator or a queue
// while the job ran, in the job's function, in a hook or in the function of OnProgress.
type PanicError = task.PanicError

// errGoexit is the error of a function that ended its goroutine.
var errGoexit = errors.New("the function ended its goroutine (runtime.Goexit, or t.FailNow of a test)")

// guarded calls a user function and turns a panic or runtime.Goexit in it into an error. The
// function runs on a goroutine of its own, as Goexit cannot be stopped and would end the
// goroutine of the caller, which may be the main goroutine.
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
// value, or nil for Goexit. The deferred function that has called recover must call escaped,
// while the frames of the panic are still on the stack.
func escaped(v any) error {
	switch v := v.(type) {
	case nil:
		return errGoexit
	case Misuse: // for example from Collect, which may have no builder to record the misuse
		if v.Site == "" {
			v.Site = userSite()
		}
		return v
	}
	return &PanicError{Value: v, Frames: panicFrames()}
}

// maxPanicFrames is the maximum number of frames in a PanicError. It is large enough
// that the frames usually reach from the fault to the user's function.
const maxPanicFrames = 10

// panicFrames returns the innermost frames, beginning with the function that panicked.
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
			// The frames of runtime.gopanic, and of the runtime's functions for signals, are
			// between the deferred calls and the calls that panicked.
			panicked = true
		case panicked:
			calls = append(calls, fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line))
		}
	}
	return slices.Clip(calls)
}
