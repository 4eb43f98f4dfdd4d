package engine

import (
	"fmt"
	"runtime"
)

// What operators are given that belongs to a build.
const (
	aDataset = "dataset"
	aBuilder = "builder"
)

// MustBuild ends, by a panic that says so, a call of an operator whose builder is of no use: the
// job's function has returned. Operators call it before anything else, so that the message has
// their name; Add does too, with the kinds of operators that others are made of. given is
// "dataset" or "builder", whichever the user gave that the builder comes from.
//
// As a rule it is a function of an operator that calls another one. Where a job's function is
// running it has kept the dataset from the call before, or from that of another job.
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

// ofAnotherBuild says of a dataset or builder that it was kept.
func ofAnotherBuild(given string) string {
	them := "datasets"
	if given == aBuilder {
		them = "it"
	}
	return "belongs to another job or to an earlier build of this one; a job function must not keep " + them + " between calls"
}

// callJobFunction calls what calls a job's function. It is there to be found by inJobFunction.
//
//go:noinline
func callJobFunction(f func() error) error { return f() }

// inJobFunction says that the calling goroutine is in the function of a job that is being
// built. Functions of operators run on goroutines of the run.
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
