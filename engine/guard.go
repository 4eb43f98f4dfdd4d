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

// errGoexit is what a function fails with that ends its goroutine.
var errGoexit = errors.New("the function ended its goroutine (runtime.Goexit, or t.FailNow of a test)")

// guarded calls a function of the user's. A panic and the end of its goroutine
// become errors. The latter takes a goroutine of its own: nothing stops a
// goroutine that is ending, and the one that main runs on would leave a process
// without any.
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

// escaped turns the way in which a function ended without returning into an
// error: v is what was recovered, nil where the goroutine is ending. It is called
// by the deferred function that recovered, while the panic's frames still stand.
func escaped(v any) error {
	switch v := v.(type) {
	case nil:
		return errGoexit
	case Misuse: // such as that of Collect, which has no builder to tell it to
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

// panicFrames returns the innermost calls from where the goroutine panicked on.
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
