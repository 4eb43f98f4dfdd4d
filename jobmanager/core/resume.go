package core

import (
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// A job that was committing when the job manager stopped goes on in that state: its
// rows are all written, and only its worker 0 could have known whether they had become
// visible. It waits until no worker of its last attempt can be alive, as task managers
// end them when their lease lapses; then one worker in CommitMode, in an attempt of its
// own, finishes what was begun, from whatever step it had come to.

// leftAside says what becomes of a commit that nobody finishes.
const leftAside = "; its results were being made visible, all, some or none of them may be; " +
	"what is left of them beside the outputs is removed by the next job that writes those"

// revive takes in a job whose commit is to be finished.
func (c *Core) revive(info wire.JobInfo, r Resumable) {
	info.Plan, info.Outcomes = nil, nil
	wait := c.config.Lease + c.config.Slack
	info.Detail = fmt.Sprintf("the job manager restarted while the results were being made visible; going on with that in %.1fs, when no worker of before can be left", wait.Seconds())
	j := &job{spec: r.Spec, info: info, outcomes: r.Outcomes, resumes: true, queued: true, early: c.clock.paid + wait, since: c.clock.paid}
	c.jobs[info.ID] = j
	c.live = append(c.live, j)
	c.record(j, false)
}

// waits reports whether a job can have slots.
func (j *job) waits() bool { return j.queued && j.early == 0 }

// placeResumed deploys the worker that is to finish a commit.
func (c *Core) placeResumed(j *job, n *node, placed []wire.Placed, ranges []wire.SlotRange) {
	j.queued, j.since = false, c.clock.paid
	j.info.Detail = "making the results visible, after a restart of the job manager, from task manager " + n.Name
	j.info.Workers = placed
	j.workers = []*worker{c.deploy(j, n, wire.CommitMode, 0, ranges)}
	c.record(j, false)
}

// resumeCommit has the worker commit that is there for it.
func (c *Core) resumeCommit(w *worker) {
	j := w.job
	if j.info.State != wire.JobCommitting || w.told != nothing {
		return
	}
	if w.fingerprint != j.info.Fingerprint {
		c.blame(w, &wire.Failure{
			Kind:     wire.MisuseFailure,
			Message:  fmt.Sprintf("the worker that was to finish the commit builds a graph with the fingerprint %s, the job's is %s", w.fingerprint, j.info.Fingerprint),
			ExitCode: -1,
		})
		return
	}
	j.committing, j.since = true, c.clock.paid
	c.command(w, wire.WorkerCommand{Commit: &wire.Commit{Outcomes: j.outcomes}})
}

// hurryResumed looks whether a job has waited long enough for the workers of before to
// end, or too long for one of its own.
func (c *Core) hurryResumed(j *job, waited time.Duration) {
	if j.early > 0 && c.clock.paid >= j.early {
		j.early, c.rethink = 0, true
	}
	var message string
	switch {
	case j.queued && waited >= c.config.ResumeTimeout:
		message = fmt.Sprintf("the job manager restarted while the results were being made visible, and no task manager had a slot to finish that within %s", c.config.ResumeTimeout)
	case !j.queued && waited >= c.config.DeployTimeout:
		message = fmt.Sprintf("the worker that was to make the results visible, on task manager %s, was not ready %s after its deployment", j.workers[0].node.Name, c.config.DeployTimeout)
	default:
		return
	}
	c.fail(j, &wire.Failure{Kind: wire.ClusterFailure, Message: message, Worker: -1, ExitCode: -1})
}
