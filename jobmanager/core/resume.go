package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// If worker 0 is lost while a job is committing, the job stays in the state committing: all
// rows are written, and it is unknown whether they have become visible. A new attempt, with one
// worker in CommitMode, then finishes the commit from the step that the lost worker had
// reached. This happens after the loss of worker 0's process or task manager, and after a
// restart of the job manager. If a worker reports that the commit failed, for example because
// of a full disk, another attempt would fail too, so the job fails.
//
// # What keeps the former worker from interfering
//
// The next worker is deployed when its attempt is on record and the former worker has ended, as
// far as the core can know:
//
//   - If the former worker's task manager reports that the process has ended, or sends Leave,
//     which it does only when it has no workers, the next worker is deployed immediately.
//   - If the task manager is lost, or the job manager was restarted, the next worker is
//     deployed when the time of a lease has passed since the last message from the task
//     manager. By then a task manager that still runs has killed its workers. If the task
//     manager's process has ended, its workers have ended with it.
//   - Later messages of the former worker are ignored, because its attempt is not the job's
//     current attempt. If a task manager lists the former worker when it registers again, it
//     gets the command to kill the worker.
//
// Two kinds of former worker may still exist then: a worker that was stopped together with its
// task manager, as when a machine sleeps (the lease counts only time in which the task manager
// runs); and a worker that still runs while its task manager is stopped. The sinks protect
// their outputs from both. A worker that commits a file or directory holds a lock on it, which
// the system releases when the process ends. If the former worker still runs, it finishes the
// commit and writes a receipt, and the next worker finds the receipt. If the former worker is
// stopped and holds the lock, the next worker waits 10 s and then fails, before it has changed
// any file; its message names the lock. The job fails too. When the former worker continues, it
// either ends or completes whole outputs. On file systems without locks, only file names
// protect the outputs. Parts, seal and receipt have names that belong to one run. Outputs get
// their final names by a rename, and after the next worker has finished, no file is left that
// the former worker could rename. But if the former worker continues while the next worker
// assembles a file, both write the same file.

// resumeTries bounds the number of workers that are deployed to finish one commit. If
// resumeTries workers are lost, the job fails.
const resumeTries = 3

// resume is the state of a commit that another worker must finish.
type resume struct {
	due   bool      // another worker must finish the commit
	begun bool      // some results may be visible
	loss  string    // how the former worker was lost; "" if the job manager restarted
	ran   []*worker // known workers of the attempt that computed the results
	seen  []string  // names of the task managers of these workers, from which the outputs' directories can be accessed
	last  string    // ID of the task manager on which the last worker was lost
	tries int       // number of workers that have been deployed to finish the commit
	doubt string    // why the commit may be finished already; "" if it cannot be
}

// cause returns text that says why another worker must finish the commit.
func (r *resume) cause() string {
	if r.doubt != "" && r.loss == "" {
		return "its last recorded state is that its results were being made visible; " + r.doubt
	}
	return cmp.Or(r.loss, "the job manager restarted") + " while the results were being made visible"
}

// note returns text that says which results may be visible if no worker finishes the commit.
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

// revive adds a recorded job whose commit must be finished.
func (c *Core) revive(info wire.JobInfo, r Resumable, doubt string) {
	j := &job{spec: r.Spec, specRecorded: true, outcomes: r.Outcomes, recorded: true, computed: true, queued: true, since: c.clock.Counted()}
	j.resume = resume{due: true, begun: true, doubt: doubt}
	for _, p := range info.Workers {
		j.resume.seen = append(j.resume.seen, p.TaskManager)
	}
	info.Plan, info.Outcomes = nil, nil
	j.info = info
	c.jobs[info.ID] = j
	c.enter(j)
	c.live = append(c.live, j)
	c.resumeAfter(j, c.clock.Counted()+c.patience(r.Continuation))
}

// commits reports whether w is the worker that commits its job.
func (w *worker) commits() bool {
	return w.job.info.State == wire.JobCommitting && w.ref.Worker == 0 && w.ref.Attempt == w.job.info.Attempt
}

// orphaned arranges for another worker to finish the commit of the lost worker w. The other
// workers of the attempt get the command to exit, as everything that they wrote is on disk. If
// a cancellation waits for the end of the commit, orphaned cancels the job instead.
func (c *Core) orphaned(w *worker, e workerEvent, f *wire.Failure) {
	j := w.job
	r := &j.resume
	if r.tries == resumeTries {
		last := *f
		last.Message = fmt.Sprintf("%s; it was the last of %d workers that were to finish the commit", shorten(f.Message, maxMessage), resumeTries)
		c.workerFailed(w, &last, notEnded)
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

// resumeAfter records that another worker must finish the commit. The worker may be deployed at
// the counted time from, or at once if from is 0.
func (c *Core) resumeAfter(j *job, from time.Duration) {
	j.reservedUntil = from
	j.info.Detail = j.resume.cause() + "; going on with that"
	if from > 0 {
		j.info.Detail += fmt.Sprintf(" in %.1fs, when no earlier worker can be left", (from - c.clock.Counted()).Seconds())
	}
	c.record(j, false)
}

// waits reports whether a job waits for slots and may use them now.
func (j *job) waits() bool { return j.queued && j.reservedUntil == 0 && (j.recorded || !j.resume.due) }

// find chooses slots for a waiting job. To finish a commit, it prefers the task managers on
// which the job's workers ran, because the directories of the outputs can be accessed from
// there. Of these, it chooses the task manager on which the last worker was lost only if no
// other of them has a free slot. It chooses other task managers only if none of these has a
// free slot.
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

// placeResumed deploys, on task manager n, the worker that finishes the commit of job j.
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
	c.recordDeployment(j)
}

// resumeCommit sends worker w, which was deployed to finish a commit, the command to commit.
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
		}, notEnded)
		return
	}
	j.committing, j.since = true, c.clock.Counted()
	c.command(w, wire.WorkerCommand{Commit: &wire.Commit{Outcomes: j.outcomes}})
}

// failOverdueResumption allows a job to use slots when it has waited until its former workers
// must have ended. It fails a job that has waited too long for a new worker.
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
