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
	// errTold is the cause of the end of what a worker was told to give up, where no
	// better one is known.
	errTold = errors.New("the worker was told to end")
	// errAlone is that where the task manager is gone.
	errAlone = errors.New("the task manager of the worker is gone")
)

// workerError is a failure of a worker of which it is known whose fault it is.
type workerError struct {
	kind wire.FailureKind
	err  error
}

func (e *workerError) Error() string { return e.err.Error() }
func (e *workerError) Unwrap() error { return e.err }

// misused is a job that cannot run as it was submitted.
func misused(err error) error { return &workerError{wire.MisuseFailure, err} }

// clusterFault is a failure that neither the job nor its data are to blame for.
func clusterFault(err error) error { return &workerError{wire.ClusterFailure, err} }

// cancelled is the end of a worker that was told to stop: whatever the reason, it is
// not to be found here.
func cancelled(reason string) error {
	if reason == "" {
		return &workerError{wire.PeerFailure, errors.New("cancelled")}
	}
	return &workerError{wire.PeerFailure, fmt.Errorf("cancelled: %s", reason)}
}

// leftover is what goes on, or stays, after a worker failed for another reason.
type leftover struct{ err error }

func (e *leftover) Error() string { return e.err.Error() }
func (e *leftover) Unwrap() error { return e.err }

// adds says that an error tells more than an earlier one, rather than follow from it.
func adds(err error) bool {
	var left *leftover
	var abandoned *task.AbandonedError
	return errors.As(err, &left) || errors.As(err, &abandoned)
}

// lateness says what did not end.
func (w *worker) lateness() error {
	return &leftover{fmt.Errorf("abandoned after %v: %s did not end when the worker was told to", w.world.patience, w.doing)}
}

// failureOf turns an error into what the user reads.
func (w *worker) failureOf(err error) *wire.Failure {
	f := &wire.Failure{Kind: kindOf(err), Worker: -1, ExitCode: -1}
	text := err.Error()
	if w.job != nil {
		d := w.job.deployment
		f.Worker, f.TaskManager = d.Worker, d.TaskManager
		// Whoever reads it knows which job it is.
		text = untitled{err, d.Spec.Name}.Error() + w.job.pathHint(err)
	}
	f.Message = clipMessage(text)
	var commit *task.CommitError
	if errors.As(err, &commit) {
		f.Outputs = clipMessage(commit.Outputs())
	}
	return f
}

// kindOf says whose fault an error is: that of the job, unless it is known better.
func kindOf(err error) wire.FailureKind {
	var known *workerError
	switch {
	case errors.As(err, &known):
		return known.kind
	case damaged(err):
		return wire.ClusterFailure // of the network, whichever worker it was sent by
	case task.FollowsPeer(err), errors.Is(err, errTold), errors.Is(err, context.Canceled):
		return wire.PeerFailure
	}
	return wire.UserFailure
}

// damaged says that bytes arrived as others than were sent. All networks of a worker have
// the same error for it.
func damaged(err error) bool { return errors.Is(err, collective.ErrDamaged) }

// maxFailure bounds the message of a failure, in bytes.
const maxFailure = 32 << 10

// clipMessage bounds a message, and makes it text.
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

// LocalPathError is an error about a file that a job was given the path of. On a
// cluster its message says on which machine the file was looked for. Operators that
// open files may return it in place of the errors of package os, which need no help.
type LocalPathError struct {
	Path string // "" where it is not known
	Err  error
}

// Error is the message of Err, which names the path.
func (e *LocalPathError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *LocalPathError) Unwrap() error { return e.Err }

// pathHint says, behind an error about a path, whose path it is: users take it for one
// of the machine that they sit at.
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

// pathOf returns the path that an error is about, if it is about one that is not
// there, or not for us.
func pathOf(err error) (path string, about bool) {
	var local *LocalPathError
	var at *fs.PathError
	var link *os.LinkError
	told := errors.As(err, &local)
	switch {
	case told && local.Path != "":
		return local.Path, true
	case !told && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
		return "", false
	case errors.As(err, &at):
		return at.Path, true
	case errors.As(err, &link):
		return link.Old, true
	}
	return "", told
}

// reason returns the cause within an error about a path.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
