package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/wire"
)

var (
	// errStopRequested is the cause with which a worker ends its work when the task manager tells it to
	// end and no other cause is known.
	errStopRequested error = toldToStop("the worker was told to end")
	// errTaskManagerGone is the cause if the task manager has ended or cannot be reached.
	errTaskManagerGone = errors.New("the task manager of the worker is gone")
)

// workerError is a failure of a worker whose kind is known.
type workerError struct {
	kind wire.FailureKind
	err  error
}

func (e *workerError) Error() string { return e.err.Error() }
func (e *workerError) Unwrap() error { return e.err }

// misused returns err as the failure of a job that cannot run as it was submitted.
func misused(err error) error { return &workerError{wire.MisuseFailure, err} }

// clusterFault returns err as a failure that neither the job nor its data has caused.
func clusterFault(err error) error { return &workerError{wire.ClusterFailure, err} }

// cancelled returns the failure of a worker that was told to stop. Its kind says that the cause
// is not in this worker.
func cancelled(reason string) error {
	if reason == "" {
		return &workerError{wire.PeerFailure, toldToStop("cancelled")}
	}
	return &workerError{wire.PeerFailure, toldToStop("cancelled: " + reason)}
}

// toldToStop is the error of work that ends because the task manager says so. A rank of a queue passes it on to
// the ranks of other workers, which may be told later. They must not take it for a failure of their own.
type toldToStop string

func (e toldToStop) Error() string { return string(e) }

// PeerLost marks the error for task.FollowsPeer.
func (toldToStop) PeerLost() bool { return true }

// leftover is an error about functions that still run, or output that could not be removed, after
// a worker has failed for another reason.
type leftover struct{ err error }

func (e *leftover) Error() string { return e.err.Error() }
func (e *leftover) Unwrap() error { return e.err }

// adds reports whether an error is to be added to an earlier failure. An error that is only a
// consequence of that failure is not added.
func adds(err error) bool {
	var left *leftover
	var abandoned *task.AbandonedError
	return errors.As(err, &left) || errors.As(err, &abandoned)
}

// stopTimeoutError returns the error about work that was told to end and has not ended in time.
func (w *worker) stopTimeoutError() error {
	return &leftover{fmt.Errorf("abandoned after %v: %s did not end when the worker was told to", w.env.stopTimeout, w.doing)}
}

// failureOf returns an error as the failure that is reported to the user.
func (w *worker) failureOf(err error) *wire.Failure {
	f := &wire.Failure{Kind: kindOf(err), Worker: -1, ExitCode: -1}
	text := err.Error()
	if w.job != nil {
		d := w.job.deployment
		f.Worker, f.TaskManager = d.Worker, d.TaskManager
		// The message is shown together with the job's name, so the name is left out.
		text = untitled{err, d.Spec.Name}.Error() + w.job.pathHint(err)
	}
	f.Message = clipMessage(text)
	var store *storeError
	if errors.As(err, &store) && w.job != nil && w.job.deployment.Resume || storeGone(err) {
		f.Kind, f.Retry = wire.ClusterFailure, true
	}
	f.Retry = f.Retry || f.Kind == wire.ClusterFailure && stalled(err)
	var commit *task.CommitError
	if errors.As(err, &commit) {
		f.Outputs = clipMessage(commit.Outputs())
	}
	return f
}

// kindOf returns the kind of a failure. It is a failure of user code, unless the error says
// otherwise.
func kindOf(err error) wire.FailureKind {
	var known *workerError
	switch {
	case errors.As(err, &known):
		return known.kind
	case damaged(err):
		return wire.ClusterFailure // a failure of the network, even if the error names another worker
	case task.FollowsPeer(err), errors.Is(err, errStopRequested), errors.Is(err, context.Canceled):
		return wire.PeerFailure
	case stalled(err):
		return wire.ClusterFailure
	}
	return wire.UserFailure
}

// stalled reports whether the ranks of a queue waited in vain although none of them was lost. All ranks run the
// same stages, so they cannot wait for one another: the network has lost a message, or lets no connection through.
func stalled(err error) bool { return errors.Is(err, collective.ErrTimeout) }

// damaged reports whether bytes were corrupted in transit. All networks of a worker return the
// same error for such damage.
func damaged(err error) bool { return errors.Is(err, collective.ErrDamaged) }

// maxFailure limits the length of the message of a failure, in bytes.
const maxFailure = 32 << 10

// clipMessage cuts a message to about maxFailure bytes, and makes it valid UTF-8.
func clipMessage(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxFailure {
		return s
	}
	end := maxFailure
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + " …"
}

// LocalPathError is an error about a file whose path was given to a job. On a cluster the message
// of the failure then says on which machine the file was looked for. Operators that open files
// may return it. Errors of package os need not be wrapped in it.
type LocalPathError struct {
	Path string // "" if unknown
	Err  error
}

// Error returns the message of Err, which should name the path.
func (e *LocalPathError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *LocalPathError) Unwrap() error { return e.Err }

// pathHint returns a text that names the machine on which the path in err was looked for, or ""
// if err is not about a path. Users might expect that paths refer to their own machine.
func (j *workerJob) pathHint(err error) string {
	path, about := pathOf(err)
	if !about {
		return ""
	}
	d := j.deployment
	hint := "paths of a job are those of its workers, here of task manager " + d.TaskManager
	if j.noDir != nil && !filepath.IsAbs(path) {
		hint += fmt.Sprintf("; relative ones are within the directory that the job was submitted in, %s, which is not there: %v", d.Spec.Dir, reason(j.noDir))
	}
	return " (" + hint + ")"
}

// pathOf reports whether err is about a path, such as the path of a file that does not exist or
// may not be accessed. It returns the path, or "" if the path is unknown.
func pathOf(err error) (path string, about bool) {
	var local *LocalPathError
	var at *fs.PathError
	var link *os.LinkError
	known := errors.As(err, &local)
	switch {
	case known && local.Path != "":
		return local.Path, true
	case !known && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
		return "", false
	case errors.As(err, &at):
		return at.Path, true
	case errors.As(err, &link):
		return link.Old, true
	}
	return "", known
}

// reason returns the cause of an error about a path, without the path.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
