package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/wire"
)

// This file has the disk of TestAnything, and the crashes of the job manager.

// placed is called when a job has got its slots.
func (w *world) placed(t require.TestingT, e Persist) {
	if e.Job.State == wire.JobDeploying {
		for i, id := range w.jobs {
			if w.goesOn[e.Job.ID] || id == e.Job.ID || !w.ahead(i, slices.Index(w.jobs, e.Job.ID)) {
				continue
			}
			if least, _ := w.core.jobs[id].wants(); least > w.offered() {
				continue // the job needs more slots than the whole cluster has
			}
			require.NotEqual(t, wire.JobWaiting, w.seen[id], "job %s must not wait while job %s, which comes after it, gets slots of its platform", id, e.Job.ID)
		}
		delete(w.goesOn, e.Job.ID)
	}
	if j := e.Job; j.State == wire.JobDeploying && j.Slots == j.Parallelism && j.Allowed.Max > 0 {
		require.True(t, j.Allowed.Has(j.Parallelism), "%d subtasks, and %s are allowed", j.Parallelism, j.Allowed)
		require.Equal(t, j.Parallelism, j.Workers[len(j.Workers)-1].Slots.Hi)
	}
	mode := wire.RunMode
	if e.Job.State == wire.JobCommitting {
		mode = wire.CommitMode
	}
	for i, h := range e.Continuation.Hosts {
		if s := e.Job.Workers[i].Slots; s.Hi > s.Lo {
			w.given(t, h.ID, mode)
		}
		ref := wire.WorkerRef{Job: e.Job.ID, Attempt: e.Job.Attempt, Worker: i}
		w.owner[ref], w.slots[ref] = w.byID(h.ID), e.Job.Workers[i].Slots.Hi-e.Job.Workers[i].Slots.Lo
	}
}

// ahead reports whether job i of w.jobs comes before job k in the line of jobs that wait.
func (w *world) ahead(i, k int) bool {
	a, b := w.jobs[i], w.jobs[k]
	worth := time.Duration(w.priority[a]-w.priority[b]) * w.config.Ageing
	if before := w.submitted[b] - w.submitted[a]; before != -worth {
		return before > -worth
	}
	return i < k
}

// write puts the first record of the queue on disk, or fails to.
func (w *world) write(t require.TestingT, fails bool) {
	e := w.queue[0]
	w.queue = w.queue[1:]
	var err error
	if fails && e.Barrier && !e.Retry {
		err = fmt.Errorf("disk full")
	} else {
		w.disk[e.Job.ID] = e.Job
		if e.Job.State.Ended() {
			delete(w.kept, e.Job.ID)
		} else {
			k := w.kept[e.Job.ID]
			if e.Spec != nil {
				k.Spec = *e.Spec
			}
			k.Continuation, k.Outcomes = *e.Continuation, e.Job.Outcomes
			w.kept[e.Job.ID] = k
		}
		w.may[e.Job.ID] = w.may[e.Job.ID] || e.Job.State == wire.JobCommitting
	}
	if e.Barrier {
		w.step(t, Persisted{ID: e.Job.ID, Attempt: e.Job.Attempt, State: e.Job.State, Err: err})
	}
}

// flush puts the first n records of the queue on disk.
func (w *world) flush(t require.TestingT, n int) {
	for range n {
		w.write(t, false)
	}
}

// crash ends the job manager, so that its connections break, and starts another one. Records that
// are not on disk are lost. The task managers go on.
func (w *world) crash(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
		return
	}
	w.now += time.Duration(rapid.IntRange(0, 300).Draw(t, "away")) * TickEvery
	for _, m := range w.managers {
		m.conn = 0
	}
	w.queue, w.base = nil, w.now
	w.jobs = slices.DeleteFunc(w.jobs, func(id wire.JobID) bool { _, ok := w.disk[id]; return !ok })
	clear(w.seen)
	clear(w.stored)
	clear(w.computed)
	clear(w.resumed)
	clear(w.awaited)
	clear(w.leaves)
	clear(w.goesOn)
	w.asked = nil
	config := w.config
	config.Started, config.Resume = config.Started.Add(w.base), maps.Clone(w.kept)
	for _, id := range w.jobs {
		info := w.disk[id]
		w.goesOn[id] = w.kept[id].Continuation.Moving
		w.seen[id], w.stored[id], w.computed[id] = info.State, info.State, info.State == wire.JobCommitting
		config.History = append(config.History, info)
	}
	slices.Reverse(config.History)
	config.Cordons, w.avoids = w.recordedCordons(), newReference()
	before := maps.Clone(w.seen)
	w.core = New(config)
	w.perform(t, w.core.Recover())
	for _, id := range w.jobs {
		was, is := before[id], w.seen[id]
		switch was {
		case wire.JobCancelling, wire.JobFailing:
		case wire.JobDeploying, wire.JobRunning:
			// A task manager may have been restarted, so that the attempt is lost.
			require.Contains(t, []wire.JobState{was, wire.JobRestarting, wire.JobFailing, wire.JobFailed}, is)
		default:
			require.Equal(t, was, is, "job %s must be taken up again", id)
		}
	}
}
