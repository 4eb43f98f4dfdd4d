package engine

import (
	"fmt"
	"strings"
)

// Job is a named function of arguments A that builds a graph. It is immutable and may be
// run any number of times, also concurrently.
//
// The function is called more than once for a run, so it must depend on its arguments alone: it
// must not use the clock, random numbers, the environment or the order of a map. What it learns
// from outside must go through Builder.Fact, as sources do for the files that they read. Run
// checks this by building the graph twice, but cannot check what closures capture; see Define.
type Job[A any] struct {
	name  string
	about string
	build func(b *Builder, args A) error
	fresh func() A // returns new arguments; nil means the zero value
}

// Define returns a job with a name and a function. The name should say what the job
// does, in lower case with hyphens, such as "iris-kmeans"; it appears in plans, logs
// and messages. A wrong name or a nil function is reported when the job is run.
//
// Two builds are compared by what they add: operators with their parameters, schemas and facts,
// and functions by symbol and line. A closure that captures a different value in each build has
// the same symbol and line, so the difference is not detected. Captured values must therefore
// follow from the arguments and facts, too.
func Define[A any](name string, build func(b *Builder, args A) error) *Job[A] {
	return &Job[A]{name: name, build: build}
}

// Anonymous returns a job without a name or arguments from a closure. It runs in
// this process only, as other processes could not find its function.
func Anonymous(build func(b *Builder) error) *Job[struct{}] {
	j := &Job[struct{}]{}
	if build != nil {
		j.build = func(b *Builder, _ struct{}) error { return build(b) }
	}
	return j
}

// Describe returns the job with a description, one or two sentences that --help
// shows on the command line.
func (j *Job[A]) Describe(text string) *Job[A] {
	described := *j
	described.about = text
	return &described
}

// From returns the job with a function that makes new arguments, into which the command line is
// parsed or encoded arguments are decoded. Without it, the new arguments are the zero value. From
// is for arguments with an interface that holds a pointer to a struct. If the interface has the
// tag `embed`, the fields of the struct are flags.
func (j *Job[A]) From(fresh func() A) *Job[A] {
	made := *j
	made.fresh = fresh
	return &made
}

// Arguments returns new arguments, see From.
func (j *Job[A]) Arguments() (args A) {
	if j.fresh != nil {
		args = j.fresh()
	}
	return args
}

// Name returns the job's name, or "" for an anonymous job.
func (j *Job[A]) Name() string { return j.name }

// title returns the job's name for the start of a message.
func (j *Job[A]) title() string { return jobTitle(j.name) }

func jobTitle(name string) string {
	if name == "" {
		return "job"
	}
	return fmt.Sprintf("job %q", name)
}

// check returns an error if the definition is wrong.
func (j *Job[A]) check() error {
	if j == nil {
		return fmt.Errorf("no job: engine.Define makes one")
	}
	if j.build == nil {
		return fmt.Errorf("%s has no function", j.title())
	}
	if strings.TrimSpace(j.name) != j.name {
		return fmt.Errorf("%s: the name begins or ends with a space", j.title())
	}
	for _, r := range j.name {
		if r < ' ' || r == '"' {
			return fmt.Errorf("%s: the name holds the character %q", j.title(), r)
		}
	}
	return nil
}

// run calls the job's function once and returns its error. It also returns an error if the
// function panics, for example with a Misuse, or ends its goroutine.
func (j *Job[A]) run(b *Builder, args A) error {
	returned := false
	err := guarded(func() error {
		err := callJobFunction(func() error { return j.build(b, args) })
		returned = true
		return err
	})
	if _, misuse := err.(Misuse); returned || misuse {
		return err
	}
	return fmt.Errorf("the job function: %w", err)
}
