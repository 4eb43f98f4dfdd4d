package core

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Bounds of what is kept of a failure.
const (
	maxMessage = 32 << 10
	maxLines   = 100
	maxLine    = 4 << 10
)

// cancelAsked ends a job because someone wants it. While worker 0 makes the results
// visible it is too late, as that cannot be undone: the job finishes, unless that takes
// longer than a worker gets that is to end.
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
	c.stopAll(j, toldCancel, reason)
	c.settle(j)
}

// noteCommit notes that a job ends otherwise while worker 0 makes its results visible. A
// worker that fails of that may know what is visible, and says so in f, if there is one.
func (c *Core) noteCommit(j *job, f *wire.Failure) {
	switch {
	case j.info.State != wire.JobCommitting:
	case j.resume.doubt != "":
		j.note = "; " + j.resume.doubt // the worker knows of its own attempt alone
	case f != nil && f.Outputs != "":
		j.note = "; " + f.Outputs
	case j.resume.due:
		j.note = j.resume.note(j.committing)
	case j.committing:
		j.note = "; its results were being made visible, all, some or none of them may be"
	}
}

// blame fails a job over one of its workers. The first cause stays, with one
// exception. A worker that only lost contact with another one has often noticed before
// the job manager hears what became of that: its task manager reports the end of the
// process, or is silent and not lost yet. So such a failure is held, and the others
// are left alone (told to stop, they would fail of that), until a cause of another
// kind is heard, or all are gone, or the time has passed in which a task manager is
// found to be silent.
//
// Worker 0 alone commits; what becomes of the others meanwhile fails nothing. Where it
// is lost itself, another one goes on (orphaned); this here is for what it says that it
// failed of.
func (c *Core) blame(w *worker, f *wire.Failure) {
	j := w.job
	known := bounded(f)
	known.Worker, known.TaskManager = w.ref.Worker, w.taskManager.Name
	if f.Kind == wire.UnheardFailure {
		known = c.unheard(known)
	}
	switch {
	case w.ref.Attempt != j.info.Attempt || w.told == toldExit:
		// Nothing depends on it any more.
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

// decide takes the failure that is known for the cause, and stops all workers.
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
	c.stopAll(j, toldCancel, "the job failed: "+j.info.Detail)
}

// maxBroken is how many workers brokenConnection names.
const maxBroken = 4

// brokenConnection says what it means that workers lost contact with each other, and that none
// was found to have ended or to be silent before: so both ends are told, as either may be it.
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
	return fmt.Sprintf("; the job manager heard of no worker that had ended or was silent, so that it was a connection between two that broke (%s)", strings.Join(where, ", "))
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

// learn adds to a job's failure how the process of the worker ended that is its cause.
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

// bounded returns a copy of a failure of which no part is too large to be kept.
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
