package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// A job whose worker 0 is lost while it commits stays in that state: its rows are all written,
// and only that worker could have known whether they had become visible. One worker in
// CommitMode, in an attempt of its own, finishes the commit from whatever step it had reached.
// This covers the loss of worker 0's process or of its task manager, and a restart of the job
// manager. A failure of the commit that a worker reports, such as a full disk, would repeat
// itself, so it fails the job.
//
// # What keeps the former worker from interfering
//
// The next worker is deployed when the former one is gone, as far as can be known:
//
//   - The former worker's task manager says that the process has ended, or that it leaves,
//     which it does only without workers: then at once.
//   - Its task manager is lost, or the job manager was down. A living task manager ends its
//     workers when its lease lapses, counted from when it was last heard; one that is gone
//     takes its workers with it. So the next worker waits that long.
//   - Later messages of the former worker are ignored: its attempt is no longer the job's. The
//     task manager that brings it back is told to kill it.
//
// Two kinds of worker may still run then: one that was stopped together with its task manager, as
// when a machine sleeps (the lease counts the time in which the task manager runs); and one
// that runs on while only its task manager was stopped. The sinks themselves guard against
// both. The worker that commits a file or directory holds its lock, which the system releases
// with the process. A former worker that runs on finishes, and leaves a receipt that tells the
// next one. If a stopped one keeps the lock, the next one waits 10 s and then fails, naming the
// lock, before it has touched anything; the job fails with it, and when the stopped worker
// wakes up, it either ends or puts whole outputs in their place. On file systems without locks
// only names guard: parts, seal and receipt are those of one run, outputs take their place by a
// rename, and where the next worker has finished, nothing is left to be renamed. But a former
// worker that wakes up there just while the next one assembles a file starts to write the same
// file again.

// resumeTries is how many workers in a row may be lost while they try to finish a commit.
const resumeTries = 3

// resume is the state of a commit that another worker is to finish.
type resume struct {
	due   bool      // there is such a commit
	begun bool      // something of it may be visible
	loss  string    // what became of the former worker; "" if the job manager restarted
	ran   []*worker // workers of the attempt that computed the results, as far as they are known
	seen  []string  // names of their task managers, which have seen the outputs' directories
	last  string    // ID of the task manager where the last worker was lost
	tries int       // workers that were deployed for it
	doubt string    // why it may be finished already, "" if it cannot be
}

// cause says why the commit has to be finished.
func (r *resume) cause() string {
	if r.doubt != "" && r.loss == "" {
		return "its last recorded state is that its results were being made visible; " + r.doubt
	}
	return cmp.Or(r.loss, "the job manager restarted") + " while the results were being made visible"
}

// note says what may be visible if nobody finishes the commit.
func (r *resume) note(committing bool) string {
	const aside = "; what is left of them beside the outputs is removed by the next job that writes those"
	when := ""
	if r.loss != "" {
		when = " when " + r.loss
	}
	if !r.begun && !committing {
		return "; its results were about to be made visible" + when + ", none of them is" + aside
	}
	return "; its results were being made visible" + when + ", all, some or none of them may be" + aside
}

// revive adds a job whose commit is to be finished.
func (c *Core) revive(info wire.JobInfo, r Resumable, doubt string) {
	j := &job{spec: r.Spec, outcomes: r.Outcomes, recorded: true, queued: true, since: c.clock.Counted()}
	j.resume = resume{due: true, begun: true, doubt: doubt}
	for _, p := range info.Workers {
		j.resume.seen = append(j.resume.seen, p.TaskManager)
	}
	info.Plan, info.Outcomes = nil, nil
	j.info = info
	c.jobs[info.ID] = j
	c.live = append(c.live, j)
	c.resumeAfter(j, c.clock.Counted()+c.config.Lease+c.config.Slack)
}

// commits reports whether a worker is the one that makes the results of its job visible.
func (w *worker) commits() bool {
	return w.job.info.State == wire.JobCommitting && w.ref.Worker == 0 && w.ref.Attempt == w.job.info.Attempt
}

// orphaned arranges for another worker to finish the commit of a lost one. The other workers of
// its attempt are told to exit: what they wrote is on disk. If a cancellation is waiting for
// the commit, the job is cancelled now.
func (c *Core) orphaned(w *worker, e workerEvent, f *wire.Failure) {
	j := w.job
	r := &j.resume
	if r.tries == resumeTries {
		last := *f
		last.Message = fmt.Sprintf("%s; it was the last of %d workers that were to finish the commit", shorten(f.Message, maxMessage), resumeTries)
		c.workerFailed(w, &last)
		return
	}
	if !r.due {
		r.ran = j.workers
		for _, p := range j.info.Workers {
			r.seen = append(r.seen, p.TaskManager)
		}
	}
	r.due, r.begun, r.last = true, r.begun || j.committing, w.taskManager.ID
	r.loss = fmt.Sprintf("worker 0 on task manager %s was lost (%s)", w.taskManager.Name, shorten(f.Message, maxText))
	j.workers, j.preparing, j.committing = nil, false, false
	if j.cancelLate != "" {
		c.cancel(j, j.cancelLate)
		return
	}
	for _, o := range r.ran {
		c.stop(o, orderedExit, "")
	}
	c.moveJob(j, jobOrphaned, "")
	j.queued, c.rethink = true, true
	sure := e == processEnded || w.taskManager.state == TaskManagerLeft
	if ends := w.taskManager.heard + c.config.Lease + c.config.Slack; !sure && ends > c.clock.Counted() {
		c.resumeAfter(j, ends)
		return
	}
	c.resumeAfter(j, 0)
}

// resumeAfter records that a commit is to be finished, after counted time from.
func (c *Core) resumeAfter(j *job, from time.Duration) {
	j.reservedUntil = from
	j.info.Detail = j.resume.cause() + "; going on with that"
	if from > 0 {
		j.info.Detail += fmt.Sprintf(" in %.1fs, when no earlier worker can be left", (from - c.clock.Counted()).Seconds())
	}
	c.record(j, false)
}

// waits reports whether a job can have slots.
func (j *job) waits() bool { return j.queued && j.reservedUntil == 0 && (j.recorded || !j.resume.due) }

// find looks for slots for a waiting job. A commit is best finished where the job's workers
// ran, as those task managers have seen the directories of the outputs. The one where the last
// worker was lost comes second, and any other last.
func (j *job) find(line *queue, offers []Offer, r Request) ([]Share, *Shortage) {
	before := line.before(r.Platform)
	if j.resume.due {
		for _, last := range []string{j.resume.last, ""} {
			near := slices.Clone(offers)
			for i, o := range near {
				if o.ID == last || !slices.Contains(j.resume.seen, o.Name) {
					near[i].Free = 0
				}
			}
			if shares, short := line.place(near, r, before); short == nil {
				return shares, nil
			}
		}
	}
	return line.place(offers, r, before)
}

// placeResumed deploys the worker that is to finish a commit.
func (c *Core) placeResumed(j *job, n *taskManager, placed []wire.Placed, ranges []wire.SlotRange) {
	j.queued, j.since = false, c.clock.Counted()
	j.resume.tries++
	after := "a restart of the job manager"
	if j.resume.loss != "" {
		after = "the loss of worker 0"
	}
	j.info.Detail = fmt.Sprintf("making the results visible, after %s, from task manager %s", after, n.Name)
	if j.resume.doubt != "" {
		j.info.Detail += "; " + j.resume.doubt
	}
	if j.info.Ran == nil {
		j.info.Ran = j.info.Workers
	}
	j.info.Workers = placed
	j.workers = []*worker{c.deploy(j, n, wire.CommitMode, 0, ranges)}
	c.record(j, false)
}

// resumeCommit tells the worker that is to finish the commit to begin.
func (c *Core) resumeCommit(w *worker) {
	j := w.job
	if !w.commits() || w.ordered != notOrdered {
		return
	}
	if w.fingerprint != j.info.Fingerprint {
		c.workerFailed(w, &wire.Failure{
			Kind:     wire.MisuseFailure,
			Message:  fmt.Sprintf("the worker that was to finish the commit builds a graph with the fingerprint %s, the job's is %s", w.fingerprint, j.info.Fingerprint),
			ExitCode: -1,
		})
		return
	}
	j.committing, j.since = true, c.clock.Counted()
	c.command(w, wire.WorkerCommand{Commit: &wire.Commit{Outcomes: j.outcomes}})
}

// failOverdueResumption lets a job go on once it has waited long enough for its former workers to
// end. It fails a job that has waited too long for a new worker.
func (c *Core) failOverdueResumption(j *job, waited time.Duration) {
	if j.reservedUntil > 0 && c.clock.Counted() >= j.reservedUntil {
		j.reservedUntil, c.rethink = 0, true
	}
	var message string
	switch {
	case j.queued && waited >= c.config.ResumeTimeout && j.resume.loss != "":
		message = fmt.Sprintf("no task manager had a slot within %s to finish the commit", c.config.ResumeTimeout)
	case j.queued && waited >= c.config.ResumeTimeout:
		message = fmt.Sprintf("%s, and no task manager had a slot to finish that within %s", j.resume.cause(), c.config.ResumeTimeout)
	case !j.queued && waited >= c.config.DeployTimeout:
		message = fmt.Sprintf("the worker that was to make the results visible, on task manager %s, was not ready %s after its deployment", j.workers[0].taskManager.Name, c.config.DeployTimeout)
	default:
		return
	}
	c.fail(j, &wire.Failure{Kind: wire.ClusterFailure, Message: message, Worker: -1, ExitCode: -1})
}
