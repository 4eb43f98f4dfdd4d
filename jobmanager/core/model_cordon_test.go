package core

import (
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/wire"
)

// This file has the part of the model for task managers that get no or fewer workers.

// mourn records the death of a worker that event e reports.
func (w *world) mourn(e Event) {
	r, ok := e.(Reported)
	if !ok || r.Ended == nil || !r.Ended.Crashed {
		return
	}
	n := w.core.conns[r.Conn]
	if n == nil || n.workers[r.WorkerRef] == nil {
		return
	}
	if s := n.workers[r.WorkerRef].state; s != WorkerFailed && s != WorkerResolved {
		w.avoids.died(death{at: w.core.clock.Counted(), job: r.Job, taskManager: n.ID})
	}
}

// die submits small jobs one after the other, and ends the process of the worker that was
// deployed last after each submission, if its task manager is connected.
func (w *world) die(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "deaths") {
		id := w.newID()
		w.restart[id] = wire.Restart{Strategy: wire.RestartNone}
		w.jobs = append(w.jobs, id)
		w.step(t, Submitted{ID: id, Spec: wire.JobSpec{Restart: w.restart[id]}, Slots: 1})
		if len(w.refs) == 0 {
			continue
		}
		ref := w.refs[len(w.refs)-1]
		if m := w.owner[ref]; m.conn != 0 && m.running[ref] {
			delete(m.running, ref)
			w.step(t, Reported{Conn: m.conn, WorkerEvent: wire.WorkerEvent{WorkerRef: ref, Ended: &wire.Ended{
				Failure: &wire.Failure{Kind: wire.LostFailure, Signal: "killed", ExitCode: -1}, Crashed: true,
			}}})
		}
	}
}

// given is called when a worker has got slots of the task manager with the given ID. The task manager
// must not be cordoned. If it is avoided, the others must have no free slots, except those that
// are reserved for a job that finishes its commit later. A worker that finishes a commit itself
// must be near the outputs instead.
func (w *world) given(t require.TestingT, id string, mode wire.WorkerMode) {
	require.False(t, w.cordoned[id], "a cordoned task manager must get no workers")
	require.False(t, w.departs(w.core.taskManagers[id]), "a task manager that leaves must get no workers")
	if w.avoids.until[id] <= w.core.clock.Counted() || mode == wire.CommitMode {
		return
	}
	free, reserved := 0, 0
	for _, o := range w.core.offers() {
		if w.avoids.until[o.ID] <= w.core.clock.Counted() {
			free += o.Free
		}
	}
	for _, j := range w.core.live {
		if least, _ := j.wants(); w.core.inLine(j) && !j.waits() {
			reserved += least
		}
	}
	require.LessOrEqual(t, free, reserved, "others have free slots that are not reserved, and %s is avoided", id)
}

// cordon cordons or uncordons a task manager, whether it is connected or not.
// recordedCordons returns the cordons that are on disk.
func (w *world) recordedCordons() map[string]wire.Cordon {
	cordons := make(map[string]wire.Cordon)
	for name, cordoned := range w.cordoned {
		if cordoned {
			cordons[name] = w.drained[name]
		}
	}
	return cordons
}

func (w *world) cordon(t *rapid.T) {
	id := w.some(t).id
	if rapid.Bool().Draw(t, "again") {
		w.cordoned[id] = !w.cordoned[id]
	}
	if w.cordoned[id] {
		w.step(t, Cordoned{TaskManager: id, Cordon: w.core.NextCordon(id, "reason", time.Time{})})
	} else {
		delete(w.drained, id)
		w.step(t, Uncordoned{TaskManager: id})
	}
}

// save asks for a checkpoint of a job, or answers a request that reached a worker.
func (w *world) save(t *rapid.T) {
	if len(w.asked) == 0 || rapid.Bool().Draw(t, "ask") {
		w.requests++
		w.awaited[w.requests] = true
		w.step(t, SaveAsked{ID: w.job(t), Request: w.requests, Place: "/place"})
		return
	}
	c := rapid.SampledFrom(w.asked).Draw(t, "request")
	if m := w.owner[c.WorkerRef]; m.conn != 0 && m.running[c.WorkerRef] {
		w.step(t, Reported{Conn: m.conn, WorkerEvent: wire.WorkerEvent{WorkerRef: c.WorkerRef, Saved: &wire.Saved{
			Request: c.Save.Request, Checkpoint: wire.Origin{Queues: []wire.OriginQueue{{Name: "q", Superstep: 1, Ended: c.Save.Request%5 == 0}}},
		}}})
	}
}

func (w *world) drain(t *rapid.T) {
	id := w.some(t).id
	within := time.Duration(rapid.IntRange(0, 2).Draw(t, "within")) * time.Second
	w.cordoned[id], w.drained[id] = true, w.core.NextDrain(id, "", within, w.core.wall())
	w.step(t, Cordoned{TaskManager: id, Cordon: w.drained[id]})
	w.step(t, Drained{TaskManager: id})
}

// scale gives a job another parallelism, if that can be.
func (w *world) scale(t *rapid.T) {
	id := w.job(t)
	to := wire.Parallelism{Min: rapid.IntRange(0, 4).Draw(t, "least")}
	to.Max = to.Min + rapid.IntRange(0, 5).Draw(t, "more")
	if w.core.CanScale(id, to) != nil {
		before := w.core.jobs[id]
		if before != nil {
			defer func(allowed wire.Parallelism) { require.Equal(t, allowed, before.info.Allowed) }(before.info.Allowed)
		}
	}
	w.step(t, Scaled{ID: id, Allowed: to})
}
