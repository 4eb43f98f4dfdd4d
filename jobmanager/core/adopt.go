package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// When the job manager restarts, jobs that had not ended are taken up again:
//
//   - A job that was resolving or waiting waits on, at the position in the queue that its
//     submission gave it. A worker that was resolving its graph is unknown, so its task manager
//     gets the command to kill it. It writes nothing, so nobody waits for its end.
//   - A job that was deploying or running is adopted. Its workers compute on without the job
//     manager until the lease of their task managers lapses. The core treats the task managers
//     of the record as task managers whose connection has just broken. If they register again
//     and list the workers, they repeat what these have reported, and the job goes on. A worker
//     that is not listed, or whose task manager is not back in time, is lost, and so is the
//     attempt (restart.go). Nothing is invented for steps of a deployment that no record shows:
//     commands are sent again, as they may be repeated, and where that is not enough the attempt
//     is lost.
//   - The workers of a job that was restarting, or failing without a known cause, are adopted
//     too, so that the next attempt begins when none of them can disturb it.
//   - A job that was committing is described in resume.go.
//
// Workers of attempts that the record does not show do not exist, because an attempt is on
// record before its workers are deployed (Persisted).

// patience returns how long the core waits for task managers that a former job manager gave
// work. After that time they have killed their workers.
func (c *Core) patience(k Continuation) time.Duration {
	return max(c.config.Lease, k.Lease) + c.config.Slack
}

// takeUp adds a recorded job that had not ended and that was not committing.
func (c *Core) takeUp(info wire.JobInfo, r Resumable) *job {
	info.Plan, info.Outcomes, info.Progress = nil, nil, nil
	now := c.clock.Counted()
	j := &job{spec: r.Spec, specRecorded: true, info: info, since: now, deployed: r.Continuation.Began, overlaps: r.Continuation.Overlaps, earlier: r.Continuation.Earlier, planned: info.Parallelism,
		moving: r.Continuation.Moving, target: r.Continuation.Target}
	if j.info.Allowed.Max == 0 {
		j.info.Allowed = r.Spec.Allowed()
	}
	j.info.Workers = slices.Clone(info.Workers)
	j.restarts.settings = r.Spec.Restart.WithDefaults()
	j.restarts.restore(r.Continuation.Restarts, now)
	c.jobs[info.ID] = j
	c.enter(j)
	c.live = append(c.live, j)
	if info.State == wire.JobResolving || info.State == wire.JobWaiting {
		j.queued, c.rethink, j.info.Workers, j.info.Detail = true, true, nil, ""
	}
	return j
}

// expect returns the task manager that registered with a former job manager as host. It counts
// as away until it registers again. If the records have task managers of several incarnations
// under one ID, expect must be called for the latest first. The others do not exist any more, and
// the caller must make them lost.
func (c *Core) expect(host wire.Register, patience time.Duration) *taskManager {
	n := c.taskManagers[host.ID]
	if n == nil || n.Incarnation != host.Incarnation {
		n = &taskManager{Register: host, since: c.wall(), state: TaskManagerAway, workers: make(map[wire.WorkerRef]*worker)}
		n.reason = "was connected before the job manager restarted"
		at, _ := slices.BinarySearchFunc(c.order, n, compareTaskManagers)
		c.order = slices.Insert(c.order, at, n)
		if c.taskManagers[host.ID] == nil {
			c.taskManagers[host.ID] = n
		}
	}
	n.patience = max(n.patience, patience)
	return n
}

// adoptAttempt adds the workers of the current attempt of a job that was taken up.
func (c *Core) adoptAttempt(j *job, r Resumable) {
	k := r.Continuation
	patience, now := c.patience(k), c.clock.Counted()
	switch j.info.State {
	case wire.JobRunning:
		j.started, j.ranBefore = max(now, 1), max(0, c.wall().Sub(j.info.Started))
		j.awaitsHeld = k.Held
	case wire.JobRestarting:
		j.restartAt = now + k.Delay
	case wire.JobFailing:
		j.deciding, j.decideBy = true, now+patience+c.config.Detection
	case wire.JobDeploying:
		// The workers may have been told to start since, and have saved states.
		j.info.Saves = j.info.Saves || j.saves()
	default:
		return
	}
	if len(k.Hosts) != len(j.info.Workers) { // nothing is known of its workers
		j.fencedUntil = now + patience
		return
	}
	j.adopted, j.onRecord = true, j.info.Attempt
	for i, p := range j.info.Workers {
		if p.Left {
			j.hasLeft(i, k.Hosts[i])
			continue
		}
		w := &worker{
			ref:         wire.WorkerRef{Job: j.info.ID, Attempt: j.info.Attempt, Worker: i},
			job:         j,
			taskManager: c.expect(k.Hosts[i], patience),
			slots:       p.Slots.Hi - p.Slots.Lo,
			mode:        wire.RunMode,
			state:       WorkerRunning,
			awaited:     true,
		}
		if j.info.State == wire.JobDeploying {
			w.state = WorkerDeploying
		}
		w.taskManager.workers[w.ref] = w
		w.taskManager.used += w.slots
		j.workers = append(j.workers, w)
		j.processes++
		j.awaited++
	}
}

// goOn continues a job that was taken up, after the workers of all such jobs were adopted.
func (c *Core) goOn(j *job, r Resumable) {
	why := "" // why the attempt is lost
	switch j.info.State {
	case wire.JobDeploying, wire.JobRunning:
		if why = r.RowsLost; j.workers == nil {
			why = "it is not on record where its workers are"
		}
		j.info.Detail = fmt.Sprintf("the job manager restarted and waits up to %.1fs for %s to connect again", c.patience(r.Continuation).Seconds(), j.awaitedHosts())
	case wire.JobRestarting:
		c.stopAll(j, orderedKeep, "the attempt was lost")
	}
	if why == "" {
		c.record(j, false)
		c.settle(j)
		return
	}
	f := lostFailure("the job manager restarted, and " + why)
	f.Worker = -1
	if !c.attemptLost(j, f, lost) {
		c.fail(j, f)
	}
}

// awaitedHosts returns text that says how many task managers a job waits for.
func (j *job) awaitedHosts() string {
	var ids []string
	for _, w := range j.workers {
		if w.awaited && !slices.Contains(ids, w.taskManager.ID) {
			ids = append(ids, w.taskManager.ID)
		}
	}
	return humanize.Count(len(ids), "task manager")
}

// adopt records that the task manager of worker w, which was deployed by a former job manager,
// has registered and lists the worker.
func (c *Core) adopt(w *worker) {
	j := w.job
	if !w.awaited {
		return
	}
	w.awaited = false
	if j.awaited--; j.awaited > 0 || j.info.State != wire.JobDeploying && j.info.State != wire.JobRunning {
		return
	}
	if j.since, j.info.Detail = c.clock.Counted(), ""; j.info.State == wire.JobDeploying {
		j.info.Detail = j.starting()
	}
	c.emit(Changed{Job: j.snapshot()})
	for _, w := range j.workers { // the former job manager may not have asked the job to leave
		c.leaveDrained(j, w.taskManager.Name)
	}
}

// loseReplaced makes the task managers lost whose ID belongs to a later incarnation.
func (c *Core) loseReplaced() {
	for _, n := range slices.Clone(c.order) {
		if c.taskManagers[n.ID] != n {
			c.lose(n, "was restarted")
		}
	}
}
