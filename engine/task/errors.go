package task

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/shared"
)

// TaskError is the failure of one operator in one subtask. It is what Run
// returns when user code, data or a disk fails.
type TaskError struct {
	Operator    string      // "Map", or `Map "scale"` where the user named it
	Node        plan.NodeID // -1 if no operator caused the failure
	Site        string      // the user's source line, may be empty
	Within      string      // the part of the job that the operator is in, may be empty
	Vertex      plan.VertexID
	Subtask     int
	Parallelism int // parallelism of the vertex
	Shard       int // shard that the operator worked on, -1 for none
	Err         error

	row   *RowError // the row that Err is about, set by explain; nil for none
	place string    // position of that row in the files that were read; "" if unknown
}

// Error returns the location of the failure and its cause.
func (e *TaskError) Error() string {
	var b strings.Builder
	if e.Within != "" {
		b.WriteString(e.Within + ": ")
	}
	b.WriteString("operator ")
	b.WriteString(e.Operator)
	if e.Site != "" {
		fmt.Fprintf(&b, " (%s)", e.Site)
	}
	fmt.Fprintf(&b, ", subtask %d of %d", e.Subtask, e.Parallelism)
	if e.Shard >= 0 {
		fmt.Fprintf(&b, ", shard %d", e.Shard)
	}
	if e.row != nil { // errors that wrap the RowError add no information
		fmt.Fprintf(&b, ": %s", e.row.message(e.place))
	} else {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.Err }

// PanicError is a panic of user code on the subtask's goroutine.
type PanicError struct {
	Value any
	// Frames are the innermost calls, "function (file:line)", beginning with the call that
	// panicked.
	Frames []string
}

// Error returns the value and the frames, one per line.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic: %v\n\t%s", e.Value, strings.Join(e.Frames, "\n\t"))
}

// Unwrap returns the value if it is an error, else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// errGoexit is the error of a subtask whose goroutine was ended by user code.
var errGoexit = errors.New("the function ended its goroutine (runtime.Goexit, or t.FailNow of a test)")

// panicFrames is the maximum number of frames in a PanicError. It is large enough
// that the frames usually reach from the fault to the user's function.
const panicFrames = 10

// recovered returns the error to report for a recovered value v. The deferred function that
// recovered v must call it. If v is a *shared.AccessError, with which keys of session objects
// panic, recovered returns v itself, as it is an ordinary error of the stage.
func recovered(v any) error {
	if err, ok := v.(error); ok {
		var access *shared.AccessError
		if errors.As(err, &access) {
			return access
		}
	}
	pcs := make([]uintptr, 64)
	pcs = pcs[:runtime.Callers(2, pcs)]
	frames := runtime.CallersFrames(pcs)
	e := &PanicError{Value: v}
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			// The frames of runtime.gopanic, and of runtime.sigpanic for nil pointers
			// and the like, separate the deferred calls from the calls that panicked.
			panicked = true
			e.Frames = slices.Clip(e.Frames)
		case panicked && len(e.Frames) < panicFrames:
			e.Frames = append(e.Frames, fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line))
		}
		if !more || len(e.Frames) == panicFrames {
			return e
		}
	}
}

// AbandonedError is returned when user functions have not returned although the run has ended.
// Their goroutines continue to run, so the process should end.
type AbandonedError struct {
	// Functions describes each function by its operator, its source line, the subtask and, if
	// there is one, the shard.
	Functions []string
	// After is how long the run waited for them.
	After time.Duration
	// Err is why the run ended.
	Err error
}

// Error names the functions and the reason the run ended.
func (e *AbandonedError) Error() string {
	return fmt.Sprintf("abandoned after %v: %s did not return when the run ended (functions that may block must watch the context); the run ended because: %v",
		e.After, strings.Join(e.Functions, "; "), e.Err)
}

// Unwrap returns why the run ended.
func (e *AbandonedError) Unwrap() error { return e.Err }

// CommitError is returned when the outputs of a run could not be made visible together. A
// Resumption, which finishes a commit that began in another process, does not return it.
type CommitError struct {
	// Visible names the sinks whose output stays visible. They are not JointSinks and had
	// committed before the failure.
	Visible []string
	// Unsure names the sinks whose output may or may not be visible: they failed to commit, or
	// their output could not be taken back. The output of all other sinks is not visible.
	Unsure []string
	// Err is why the commit failed.
	Err error
}

// Error says why the commit failed. Outputs says which outputs are visible.
func (e *CommitError) Error() string { return e.Err.Error() }

// Unwrap returns why the commit failed.
func (e *CommitError) Unwrap() error { return e.Err }

// Outputs returns clauses, not whole sentences, that say which outputs of the run are visible.
func (e *CommitError) Outputs() string {
	var parts []string
	if len(e.Visible) > 0 {
		parts = append(parts, "of its outputs these are visible: "+strings.Join(e.Visible, ", "))
	}
	if len(e.Unsure) > 0 {
		parts = append(parts, "of its outputs it is not known whether these are visible: "+strings.Join(e.Unsure, ", "))
	}
	if parts == nil {
		return "none of its outputs is visible"
	}
	return strings.Join(append(parts, "no other one is"), "; ")
}

// errStopped is the error of a subtask that stops because the run ended for another reason.
var errStopped = errors.New("the run ended")

// followsCancel reports whether err is a consequence of the run's end and not its cause. cause
// is the cause of the run's context, or nil.
func followsCancel(err, cause error) bool {
	return errors.Is(err, errStopped) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || cause != nil && errors.Is(err, cause)
}

// damaged reports whether err wraps a *disk.DamagedError.
func damaged(err error) bool {
	var damage *disk.DamagedError
	return errors.As(err, &damage)
}

// failures collects the failures of the subtasks of a run.
type failures struct {
	errs []*TaskError
}

// choose returns the failure that the run reports, or nil if there is none. It takes the
// failure of the lowest shard and, among several of that shard, the failure of the first vertex
// and then of the first subtask. A failure outside of any shard has shard -1 and comes first,
// as it usually happened before the first row. Disk damage takes precedence over other
// failures, as it may be their cause. Failures that follow from other processes are returned
// only if there are no other failures.
func (f *failures) choose() *TaskError {
	if len(f.errs) == 0 {
		return nil
	}
	own := slices.DeleteFunc(slices.Clone(f.errs), func(te *TaskError) bool { return FollowsPeer(te.Err) })
	if len(own) == 0 {
		own = f.errs
	}
	if byDisk := slices.DeleteFunc(slices.Clone(own), func(te *TaskError) bool { return !damaged(te) }); len(byDisk) > 0 {
		own = byDisk
	}
	return slices.MinFunc(own, func(a, b *TaskError) int {
		if a.Shard != b.Shard {
			return a.Shard - b.Shard
		}
		if a.Vertex != b.Vertex {
			return int(a.Vertex - b.Vertex)
		}
		return a.Subtask - b.Subtask
	})
}
