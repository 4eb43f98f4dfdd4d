package core

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Bounds of the parts of a failure that are kept.
const (
	maxMessage = 32 << 10
	maxLines   = 100
	maxLine    = 4 << 10
)

// cancelAsked ends a job on request. While worker 0 makes the results visible it is too late
// for that, as this cannot be undone: the job finishes, unless the commit takes longer than
// KillAfter.
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

// cancel ends a job for a reason.
func (c *Core) cancel(j *job, reason string) {
	c.noteCommit(j, nil)
	if !c.moveJob(j, jobCancels, reason) {
		return
	}
	if j.processes > 0 {
		c.record(j, false)
	}
	c.stopAll(j, orderedCancel, reason)
	c.settle(j)
}

// noteCommit records what may be visible of a job that fails or is cancelled while worker 0
// makes its results visible. If worker 0 itself failed, it may know what is visible, and says
// so in f. f is nil if there is no failure.
func (c *Core) noteCommit(j *job, f *wire.Failure) {
	switch {
	case j.info.State != wire.JobCommitting:
	case j.resume.doubt != "":
		j.note = "; " + j.resume.doubt // the worker knows only of its own attempt
	case f != nil && f.Outputs != "":
		j.note = "; " + f.Outputs
	case j.resume.due:
		j.note = j.resume.note(j.committing)
	case j.committing:
		j.note = "; its results were being made visible, all, some or none of them may be"
	}
}

// workerFailed fails a job because of one of its workers. The first cause stays, with one exception. A
// worker that only lost contact with another one often notices this before the job manager
// hears what became of the other: its task manager has yet to report the end of the process, or
// to be found silent. So such a failure is held, and the other workers are not told to stop,
// since they would then report failures of their own. It is held until a cause of another kind
// is heard, or all workers are gone, or a silent task manager would have been found.
//
// Only worker 0 commits; during that, failures of other workers do not matter. If worker 0 is
// lost, another worker goes on (orphaned); workerFailed handles failures that worker 0 reports itself.
func (c *Core) workerFailed(w *worker, f *wire.Failure) {
	j := w.job
	known := bounded(f)
	known.Worker, known.TaskManager = w.ref.Worker, w.taskManager.Name
	if f.Kind == wire.UnheardFailure {
		known = c.explainUnheard(known)
	}
	switch {
	case w.ref.Attempt != j.info.Attempt || w.ordered == orderedExit:
		// Nothing depends on this worker any more.
	case j.info.State == wire.JobFailing && j.deciding && f.Kind != wire.PeerFailure:
		j.info.Failure = known
		c.decide(j)
	case j.info.State == wire.JobCommitting && w.ref.Worker != 0:
	case j.info.State == wire.JobResolving || f.Kind != wire.PeerFailure:
		c.fail(j, known)
	default:
		c.noteCommit(j, known)
		if !c.moveJob(j, jobFails, known.Error()+"; looking for what caused it") {
			return
		}
		j.info.Failure = known
		j.deciding, j.decideBy = true, c.clock.Counted()+c.config.Detection+c.config.Slack
		c.record(j, false)
	}
}

// decide makes the failure known so far the cause, and stops all workers.
func (c *Core) decide(j *job) {
	j.deciding = false
	if f := j.info.Failure; f.Kind == wire.PeerFailure {
		told := *f
		told.Message += j.brokenConnection()
		j.info.Failure = &told
	}
	j.info.Detail = j.info.Failure.Error()
	if j.processes > 0 {
		c.record(j, false)
	}
	c.stopAll(j, orderedCancel, "the job failed: "+j.info.Detail)
}

// maxBroken is how many workers brokenConnection names.
const maxBroken = 4

// brokenConnection explains a failure in which workers lost contact with each other, but none
// was found to have ended or to be silent. It names both ends, as either may be at fault.
func (j *job) brokenConnection() string {
	if len(j.workers) < 2 {
		return ""
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

// fail fails a job for a reason that is known to be the cause.
func (c *Core) fail(j *job, f *wire.Failure) {
	c.noteCommit(j, f)
	if !c.moveJob(j, jobFails, f.Error()) {
		return
	}
	j.info.Failure = f
	c.decide(j)
	c.settle(j)
}

// learn adds to a job's failure how the process of the failed worker ended.
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

// bounded returns a copy of a failure with every part shortened to its bound.
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

// shorten cuts a text that is too long, and says so.
func shorten(text string, most int) string {
	if len(text) <= most {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("… (%d bytes more)", len(text)-most)
}
