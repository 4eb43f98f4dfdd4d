package core

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// resumes is called when worker ref is deployed to finish a commit. It requires that no former
// worker can still commit.
func (w *world) resumes(t require.TestingT, ref wire.WorkerRef) {
	for _, before := range w.refs {
		if before.Job != ref.Job || before.Worker != 0 || before.Attempt >= ref.Attempt || w.resolves[before] {
			continue
		}
		if !w.gone[before] && (!overlaps(ref.Job) || w.said[before][saidFinished] || w.commits[before]) {
			require.GreaterOrEqual(t, w.now-w.heard[before], w.core.config.Lease, "the lease of the former worker %s must have lapsed", before)
		}
		for _, n := range w.core.order {
			require.NotContains(t, n.workers, before)
		}
	}
	require.Equal(t, wire.JobCommitting, w.stored[ref.Job])
	require.True(t, w.may[ref.Job], "the job must be recorded as committing before another worker may commit")
	w.commits[ref] = true
	w.resumed[ref.Job]++
	require.LessOrEqual(t, w.resumed[ref.Job], resumeTries)
}

// overlaps reports whether the workers of a job say that its attempts may overlap.
func overlaps(id wire.JobID) bool { return id != "" && id[len(id)-1]%2 == 0 }

// alone is called when worker ref is deployed to run or to resolve. It requires that no worker of
// an earlier attempt that ran can be left, unless attempts of the job may overlap, that no worker of
// an earlier attempt may commit, and that the restart strategy allows the attempt. A worker that was
// not told to prepare the sinks does not count, as it writes nothing.
func (w *world) alone(t require.TestingT, ref wire.WorkerRef) {
	for _, before := range w.refs {
		if before.Job != ref.Job || before.Attempt == ref.Attempt || w.resolves[before] {
			continue
		}
		if !w.gone[before] && !overlaps(ref.Job) && w.prepares[wire.WorkerRef{Job: before.Job, Attempt: before.Attempt}] {
			require.GreaterOrEqual(t, w.now-w.heard[before], w.core.config.Lease, "the lease of the former worker %s must have lapsed", before)
		}
		for _, n := range w.core.order {
			require.NotContains(t, n.workers, before, "two attempts must never run at once on task managers that are not lost")
		}
	}
	require.False(t, w.may[ref.Job], "no attempt may begin after one that may commit")
	info, _ := w.core.Job(ref.Job)
	require.LessOrEqual(t, info.Restarts, len(info.Lost), "drains are no restarts")
	switch r := w.restart[ref.Job]; {
	case r.Strategy == wire.RestartNone:
		require.Zero(t, info.Restarts)
	case r.Attempts > 0 && r.Strategy != wire.RestartFailureRate:
		require.LessOrEqual(t, info.Restarts, r.Attempts)
	}
	for _, lost := range info.Lost {
		require.Less(t, lost.Number, ref.Attempt)
	}
}

// userError is the message of errors that workers report and that are not losses.
const userError = "an error of user code"

// offered returns the number of slots of task managers that take new work, free or in use.
func (w *world) offered() (slots int) {
	for i, o := range w.core.offers() {
		if !w.cordoned[o.ID] && !w.departs(w.core.order[i]) {
			slots += o.Slots
		}
	}
	return slots
}

// deliver performs a Send: it passes the message to the task manager, if the connection is
// still open.
func (w *world) deliver(t require.TestingT, e Send) {
	m := w.byConn[e.Conn]
	arrives := m.conn == e.Conn
	if d := e.Message.Deploy; d != nil {
		require.NotContains(t, w.said, d.WorkerRef, "deployed twice")
		require.Equal(t, d.Attempt, w.disk[d.Job].Attempt, "an attempt must be on record before its workers are deployed")
		if d.Mode == wire.CommitMode {
			w.resumes(t, d.WorkerRef)
		} else {
			w.alone(t, d.WorkerRef)
		}
		if arrives {
			m.running[d.WorkerRef] = true
		}
		w.refs = append(w.refs, d.WorkerRef)
		w.resolves[d.WorkerRef] = d.Mode == wire.ResolveMode
		w.owner[d.WorkerRef] = m
		w.slots[d.WorkerRef] = d.Slots[d.Worker].Hi - d.Slots[d.Worker].Lo
		w.said[d.WorkerRef] = map[workerEvent]bool{}
	}
	if c := e.Message.Worker; c != nil {
		switch {
		case c.Kill != nil || c.Cancel != nil || c.Exit != nil:
			if !arrives {
				return
			}
			m.told[c.WorkerRef] = true
		case c.Save != nil:
			require.Equal(t, 0, c.WorkerRef.Worker)
			require.True(t, w.said[c.WorkerRef][saidPrepared], "only a running job has a state")
			w.asked = append(w.asked, *c)
		case c.Commit != nil:
			require.True(t, w.may[c.Job], "the job must be recorded as committing before it commits")
			require.Equal(t, 0, c.WorkerRef.Worker)
			require.Equal(t, w.core.jobs[c.Job].info.Attempt, c.Attempt)
		case c.Prepare != nil:
			w.prepares[c.WorkerRef] = true
		case c.Start != nil:
			for _, ref := range w.refs {
				if ref.Job == c.Job && ref.Attempt == c.Attempt {
					require.True(t, w.said[ref][saidReady], "worker %s must be ready before the job is started", ref)
				}
			}
			require.True(t, w.said[wire.WorkerRef{Job: c.Job, Attempt: c.Attempt}][saidPrepared])
		}
	}
}

// changed requires that followers see only transitions that jobTable contains. Failing and
// cancelling may be skipped if the job has no workers that must end first.
func (w *world) changed(t require.TestingT, j wire.JobInfo) {
	if c := j.Checkpoints; c != nil {
		require.LessOrEqual(t, len(c.Newest), min(c.Written, wire.MaxCheckpointsTold))
	}
	before, known := w.seen[j.ID]
	w.seen[j.ID] = j.State
	if j.State == wire.JobRestarting {
		require.False(t, w.computed[j.ID], "a job whose workers have all finished must not be restarted")
		last := j.Lost[len(j.Lost)-1]
		require.Equal(t, j.Attempt, last.Number)
		require.NotContains(t, last.Cause, userError, "an error of user code must not restart a job")
	}
	w.computed[j.ID] = w.computed[j.ID] || j.State == wire.JobCommitting
	require.Equal(t, w.stored[j.ID], j.State, "a state must be recorded before followers get it")
	if !known || before == j.State {
		require.False(t, known && before.Ended(), "followers must get no event of a job that had ended")
		return
	}
	for e := range jobEvents {
		next, ok := jobTable.next(before, jobEvent(e))
		last, passed := jobTable.next(next, jobEmptied)
		if ok && (next == j.State || passed && last == j.State) {
			return
		}
	}
	require.Fail(t, "followers must get only transitions of jobTable", "%s from %s to %s", j.ID, before, j.State)
}

// check requires that the core's state agrees with the workers that the simulated task managers
// run.
func (w *world) check(t require.TestingT) {
	processes := map[wire.JobID]int{}
	free := 0
	for _, n := range w.core.order {
		used := 0
		lied := false // it has said that a worker ended, and lists it now
		for ref, k := range n.workers {
			lied = lied || w.gone[ref]
			if k.pending != nil {
				w.owner[ref], w.slots[ref] = w.byID(n.ID), k.slots
			}
			require.Equal(t, n.ID, w.owner[ref].id)
			used += w.slots[ref]
			processes[ref.Job]++
		}
		require.Equal(t, used, n.used)
		if n.patience == 0 && !lied { // otherwise some of its workers may have ended since they were put on record
			require.LessOrEqual(t, used, n.Slots, "a slot must not be given to two workers")
		}
		if n.state == TaskManagerAlive && !w.cordoned[n.ID] && !w.departs(n) {
			free += max(0, n.Slots-used)
		}
		require.Equal(t, w.avoids.until[n.ID] > w.core.clock.Counted(), w.core.avoidedInfo(n) != nil, n.ID)
		require.Equal(t, n.conn != 0, n.state != TaskManagerAway)
		w.checkLeaving(t, n)
	}
	require.Equal(t, free, w.core.Overview().Free)
	for _, n := range w.core.gone {
		require.Empty(t, n.workers)
	}
	for _, id := range w.jobs {
		j := w.core.jobs[id]
		require.Equal(t, processes[id], j.processes)
		require.Equal(t, w.seen[id], j.info.State)
		if s := j.info.State; s == wire.JobFailed || s == wire.JobCancelled || s == wire.JobWaiting && (j.info.Attempt == 0 || j.info.Restarts > 0) {
			require.Zero(t, processes[id], "job %s is %s and must not have workers", id, s)
		}
		require.Equal(t, j.info.State == wire.JobFailed || j.info.State == wire.JobFailing, j.info.Failure != nil)
		require.Equal(t, !j.info.State.Ended() || processes[id] > 0, slices.Contains(w.core.live, j))
	}
	require.Len(t, w.core.jobs, len(w.jobs))
	w.core.Jobs()
	w.core.TaskManagers(w.now)
}
