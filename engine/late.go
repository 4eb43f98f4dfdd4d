package engine

import (
	"fmt"
	"runtime"
)

// Objects of another build that may be passed to an operator by mistake.
const (
	aDataset = "dataset"
	aBuilder = "builder"
)

// MustBuild panics with a message if the job's function has returned, as the builder cannot be
// used then. Operators call it first, so that the message names them. Add calls it too, with the
// kind of the operator that it adds. given says what the user passed to the operator, "dataset"
// or "builder".
//
// The usual cause is a function of one operator that calls another operator. If a job's
// function is running, the cause is that it kept a dataset of an earlier call, or of another
// job.
func (b *Builder) MustBuild(op, given string) {
	if b == nil || !b.sealed {
		return
	}
	err := fmt.Errorf("%s is called when the job has been built: operators are added by the job's function itself, before anything runs; "+
		"functions given to operators see rows, not datasets", opTitle(op))
	if inJobFunction() {
		err = fmt.Errorf("%s: the %s %s", opTitle(op), given, ofAnotherBuild(given))
	}
	panic(Misuse{Site: userSite(), Err: err})
}

// ofAnotherBuild returns the text about a dataset or a builder that was kept from another build.
func ofAnotherBuild(given string) string {
	them := "datasets"
	if given == aBuilder {
		them = "it"
	}
	return "belongs to another job or to an earlier build of this one; a job function must not keep " + them + " between calls"
}

// callJobFunction calls f, which calls a job's function. inJobFunction looks for the frame of
// callJobFunction.
//
//go:noinline
func callJobFunction(f func() error) error { return f() }

// inJobFunction reports whether a job's function is on the stack of the calling goroutine.
// Functions of operators run on other goroutines.
func inJobFunction() bool {
	name := modulePath + "/engine.callJobFunction"
	pcs := make([]uintptr, 64)
	for skip := 1; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs)
		if n == 0 {
			return false
		}
		for frames, more := runtime.CallersFrames(pcs[:n]), true; more; {
			var f runtime.Frame
			if f, more = frames.Next(); f.Function == name {
				return true
			}
		}
	}
}
