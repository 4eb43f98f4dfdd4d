package core

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// These constants bound the parts of a failure: the bytes of each text, and the number of lines
// of output.
const (
	maxMessage = 32 << 10
	maxLines   = 100
	maxLine    = 4 << 10
)

// cancelAsked cancels a job on request. A commit that worker 0 has begun cannot be undone. So
// if the commit has begun, the job continues, and is cancelled only if the commit takes longer
// than KillAfter.
func (c *Core) cancelAsked(e CancelAsked) {
	j := c.jobs[e.ID]
	if j == nil {
		return
	}
	reason := "cancelled: " + shorten(cmp.Or(e.Reason, "no reason given"), maxMessage)
	if j.info.State != wire.JobCommitting || !j.committing {
		c.cancel(j, reason)
	} else if j.cancelLate == "" {
		j.cancelLate, j.since = reason, c.clock.Counted()
		j.info.Detail += fmt.Sprintf("; it is to be cancelled if that takes longer than %s", c.config.KillAfter)
		c.emit(Changed{Job: j.snapshot()})
	}
}

// cancel cancels a job for the given reason.
func (c *Core) cancel(j *job, reason string) {
	c.noteCommit(j, nil)
	if !c.moveJob(j, jobCancels, reason) {
		j.unwanted = true
		return
	}
	if j.processes > 0 {
		c.record(j, false)
	}
	c.stopAll(j, orderedCancel, reason)
	c.settle(j)
}

// noteCommit is called if a job fails or is cancelled while worker 0 commits. It records which
// results of the job may be visible. f is the failure, or nil if there is none. If worker 0
// itself failed, f may say which results are visible.
func (c *Core) noteCommit(j *job, f *wire.Failure) {
	switch {
	case j.info.State != wire.JobCommitting:
	case j.resume.doubt != "":
		j.note = "; " + j.resume.doubt // f describes only the results of the worker's own attempt
	case f != nil && f.Outputs != "":
		j.note = "; " + f.Outputs
	case j.resume.due:
		j.note = j.resume.note(j.committing)
	case j.committing:
		j.note = "; its results were being made visible, all, some or none of them may be"
	}
}

// ending says whether the process of a worker that failed has ended, and how.
type ending int

const (
	notEnded  ending = iota // the worker itself has reported the failure
	lost                    // the worker is lost, or lost contact with another worker
	crashed                 // the process ended although nobody had told it to
	announced               // the worker is lost, and this had been announced: its task manager leaves
)

// workerFailed fails a job because worker w failed, or restarts it because w is lost. The first
// failure that is reported becomes the cause, with one exception. A worker that lost contact with
// another worker often notices this before the job manager learns why: the task manager of the
// other worker has not yet reported the end of that worker's process, or its silence has not yet
// been detected. So a failure of kind PeerFailure is not the cause at once, and the other workers
// do not get a command to stop, because they would then report failures of their own. The
// PeerFailure becomes the cause only if no failure of another kind is reported before all workers
// have ended, or within the time in which a silent task manager would be detected.
//
// Only worker 0 commits. During the commit, failures of other workers are ignored. If worker 0
// is lost, another worker finishes the commit (see orphaned); workerFailed handles only
// failures that worker 0 itself reports.
func (c *Core) workerFailed(w *worker, f *wire.Failure, how ending) {
	j := w.job
	if w.takes { // its rows move later
		c.precopyDue(j)
		return
	}
	known := bounded(f)
	known.Worker, known.TaskManager = w.ref.Worker, w.taskManager.Name
	if f.Kind == wire.UnheardFailure {
		known = c.explainUnheard(known)
	}
	switch {
	case w.ref.Attempt != j.info.Attempt || w.ordered == orderedExit:
		// The job no longer needs this worker.
	case j.info.State == wire.JobRestarting:
		// The cause is known, and nothing that this attempt's workers report matters any more.
	case j.info.State == wire.JobFailing && j.deciding && f.Kind != wire.PeerFailure:
		j.info.Failure = known
		c.decide(j, how)
	case j.info.State == wire.JobCommitting && w.ref.Worker != 0:
	case j.info.State == wire.JobResolving && how != notEnded && c.resolveAgain(j, known, how):
	case j.info.State == wire.JobResolving || f.Kind != wire.PeerFailure:
		if how == notEnded && !f.Retry || !c.attemptLost(j, known, how) {
			c.fail(j, known)
		}
	default:
		c.noteCommit(j, known)
		if !c.moveJob(j, jobFails, known.Error()+"; looking for what caused it") {
			return
		}
		j.info.Failure = known
		j.deciding, j.decideBy, j.detected = true, c.causeDue(j), c.wall()
		c.record(j, false)
	}
}

// causeDue returns the counted time until which the core waits for the cause of a failure that
// may be a consequence. By then a silent task manager, one whose connection has ended, and one
// that a restarted job manager still expects, is lost.
func (c *Core) causeDue(j *job) time.Duration {
	due := c.clock.Counted() + max(c.config.Detection, c.config.Reconnect) + c.config.Slack
	for _, w := range j.workers {
		if w != nil && w.awaited {
			due = max(due, w.taskManager.heard+w.taskManager.patience+c.config.Slack)
		}
	}
	return due
}

// decide makes the failure in j.info the cause, and sends all workers a command to stop. It
// restarts the job if the cause is the loss of a worker, and otherwise the job fails.
func (c *Core) decide(j *job, how ending) {
	j.deciding = false
	if f := j.info.Failure; f.Kind == wire.PeerFailure {
		told := *f
		told.Message += j.brokenConnection()
		j.info.Failure = &told
	}
	if (how != notEnded || j.info.Failure.Retry) && c.attemptLost(j, j.info.Failure, how) {
		return
	}
	j.info.Failure = j.explain(j.info.Failure)
	j.info.Detail = j.info.Failure.Error()
	if j.processes > 0 {
		c.record(j, false)
	}
	c.stopAll(j, orderedCancel, "the job failed: "+j.info.Detail)
}

// maxBroken bounds the number of workers that brokenConnection names.
const maxBroken = 4

// brokenConnection returns text about a failure in which workers lost contact with each other
// although no worker has ended and no task manager is silent. The text names the workers on
// both sides of a broken connection, because either may have caused the failure.
func (j *job) brokenConnection() string {
	if len(j.workers) < 2 || j.adopted {
		return "" // a former job manager may have got such a report
	}
	var where []string
	for _, w := range j.workers[:min(len(j.workers), maxBroken)] {
		where = append(where, fmt.Sprintf("worker %d on task manager %s", w.ref.Worker, w.taskManager.Name))
	}
	if more := len(j.workers) - len(where); more > 0 {
		where = append(where, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("; no worker that had ended or was silent was reported, so a connection between two workers broke (%s)", strings.Join(where, ", "))
}

// fail fails a job with failure f, which is known to be the cause.
func (c *Core) fail(j *job, f *wire.Failure) {
	c.noteCommit(j, f)
	if !c.moveJob(j, jobFails, f.Error()) {
		return
	}
	j.info.Failure = f
	c.decide(j, notEnded)
	c.settle(j)
}

// learn adds to the failure of job j, if worker w caused it, how the process of w ended, which
// f describes.
func (j *job) learn(w *worker, f *wire.Failure) {
	cause := j.info.Failure
	if f == nil || cause == nil || j.info.State.Ended() || cause.Worker != w.ref.Worker || w.ref.Attempt != j.info.Attempt {
		return
	}
	more, end := *cause, bounded(f)
	if more.Signal == "" && more.ExitCode <= 0 {
		more.Signal, more.ExitCode = end.Signal, end.ExitCode
	}
	if len(more.LastLines) == 0 {
		more.LastLines = end.LastLines
	}
	j.info.Failure = &more
}

// bounded returns a copy of a failure in which every part that exceeds its bound is shortened.
func bounded(f *wire.Failure) *wire.Failure {
	b := *f
	b.Message = shorten(b.Message, maxMessage)
	b.Signal = shorten(b.Signal, maxText)
	b.Outputs = shorten(b.Outputs, maxMessage)
	lines := b.LastLines[max(0, len(b.LastLines)-maxLines):]
	b.LastLines = nil
	for _, line := range lines {
		b.LastLines = append(b.LastLines, shorten(line, maxLine))
	}
	return &b
}

// shorten returns text, truncated to about most bytes if it is longer. A truncated text ends in
// a note that says how many bytes are missing.
func shorten(text string, most int) string {
	if len(text) <= most {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("… (%d bytes more)", len(text)-most)
}
