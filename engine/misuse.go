package engine

import (
	"fmt"
	"strings"
)

// Misuse is one mistake in what a job's function has built.
type Misuse struct {
	Site string // the user's source line, such as "main.go:31", or ""
	Err  error
}

// Error returns the source line, if there is one, and the message.
func (m Misuse) Error() string {
	if m.Site == "" {
		return m.Err.Error()
	}
	return m.Site + ": " + m.Err.Error()
}

// Unwrap returns the error without the source line.
func (m Misuse) Unwrap() error { return m.Err }

// BuildError holds all mistakes in a job, in the order in which they were found. Nothing of the
// job has run.
type BuildError struct {
	Job     string
	Misuses []Misuse
}

// maxMisuses is the maximum number of misuses that a message lists. A job that adds operators
// in a loop may make the same mistake a thousand times.
const maxMisuses = 20

// Error lists the misuses, one per line if there are several.
func (e *BuildError) Error() string {
	title := jobTitle(e.Job)
	if len(e.Misuses) == 1 {
		return title + ": " + e.Misuses[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d errors:", title, len(e.Misuses))
	for i, m := range e.Misuses {
		if i == maxMisuses {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Misuses)-i)
			break
		}
		b.WriteString("\n  " + strings.ReplaceAll(m.Error(), "\n", "\n  "))
	}
	return b.String()
}

// Unwrap returns the misuses.
func (e *BuildError) Unwrap() []error {
	errs := make([]error, len(e.Misuses))
	for i, m := range e.Misuses {
		errs[i] = m
	}
	return errs
}
