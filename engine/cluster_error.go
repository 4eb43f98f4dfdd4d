package engine

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/superstep-ml/superstep/internal/wire"
)

// JobError says that a job on a cluster did not finish.
type JobError struct {
	Job   string // the job's name on the cluster
	Name  string // the name given to Define
	State string // "failed" or "cancelled"
	// Detail is the job manager's text about the end of the job.
	Detail string
	// Failure is the first cause, or nil if there is none.
	Failure *Failure
}

// Failure describes why a job on a cluster failed.
type Failure struct {
	Message string // with operator, source line, subtask and shard, if known
	// Worker is the number of the worker that failed first, or -1 if no worker failed.
	// TaskManager names the task manager on which the worker ran.
	Worker      int
	TaskManager string
	// ExitCode is the exit code of the worker's process. It is -1 if the process was still
	// running, or if a signal ended it. Signal names that signal.
	ExitCode int
	Signal   string
	// LastLines are the last lines of the worker's output.
	LastLines []string
}

// newJobError returns the error of a job that did not finish.
func newJobError(info *wire.JobInfo) *JobError {
	e := &JobError{Job: string(info.ID), Name: info.Name, State: info.State.String(), Detail: info.Detail}
	if f := info.Failure; f != nil {
		e.Failure = &Failure{
			Message: f.Message, Worker: f.Worker, TaskManager: f.TaskManager,
			ExitCode: f.ExitCode, Signal: f.Signal, LastLines: f.LastLines,
		}
	}
	return e
}

// Error returns the cause, the worker on which it occurred, and the last lines that the worker
// wrote.
func (e *JobError) Error() string {
	title := jobTitle(e.Name)
	f := e.Failure
	if f == nil {
		text := fmt.Sprintf("%s was %s", title, e.State)
		if e.State == wire.JobFailed.String() {
			text = title + " failed"
		}
		if e.Detail != "" {
			text += ": " + e.Detail
		}
		return fmt.Sprintf("%s (%s)", text, e.Job)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", title, printableText(f.Message))
	if where := f.where(); where != "" {
		fmt.Fprintf(&b, "\n  in %s", where)
	}
	if len(f.LastLines) > 0 && !f.quotesOutput() {
		b.WriteString("\n  the last lines of its output:")
		for _, line := range f.LastLines {
			// An escape sequence in the output must not change the user's terminal.
			b.WriteString("\n    " + clipLine(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "), maxOutputLine))
		}
	}
	return b.String()
}

// printableText replaces unprintable characters in a text of several lines that user code on another
// machine has written, as escape sequences in it could change the user's terminal.
func printableText(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// quotesOutput reports whether the message already contains the last lines of the output, as the message
// of a panic does.
func (f *Failure) quotesOutput() bool {
	for _, line := range f.LastLines {
		if !strings.Contains(f.Message, strings.TrimSpace(line)) {
			return false
		}
	}
	return true
}

// maxOutputLine limits the length in characters of lines of a worker's output in a message.
const maxOutputLine = 500

// where returns the name of the worker, and how its process ended, if it has ended.
func (f *Failure) where() string {
	if f.Worker < 0 {
		return ""
	}
	text := fmt.Sprintf("worker %d", f.Worker)
	if f.TaskManager != "" {
		text += " on task manager " + f.TaskManager
	}
	switch {
	case f.Signal != "":
		text += ", ended by signal " + f.Signal
	case f.ExitCode > 0:
		text += fmt.Sprintf(", exit code %d", f.ExitCode)
	}
	return text
}
