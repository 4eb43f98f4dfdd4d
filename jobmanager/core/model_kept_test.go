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

// This file has the kept processes of TestAnything. Their task managers list them.

// lists returns the workers whose processes wait on the task manager.
func (m *manager) lists() []wire.WorkerRef { return slices.SortedFunc(maps.Keys(m.kept), compareRefs) }

// hearKept records a report that a worker has kept its process.
func (w *world) hearKept(e Reported) {
	if m := w.byConn[e.Conn]; m != nil && m.conn == e.Conn && w.core.conns[e.Conn] != nil && e.Ended != nil && e.Ended.Kept {
		m.kept[e.WorkerRef] = true
	}
}

// begin connects all task managers, and submits a job that may be restarted. Its workers report what they
// should until one of them has finished.
func (w *world) begin(t *rapid.T) {
	for _, m := range w.managers {
		if m.conn == 0 {
			w.conns++
			m.conn = w.conns
			w.byConn[m.conn] = m
			r := wire.Register{Version: wire.Version, ID: m.id, Incarnation: fmt.Sprint(m.inc), Slots: 3, Memory: 300, Executable: anyHash, Leaving: m.leaving, Kept: m.lists()}
			r.Running = slices.SortedFunc(maps.Keys(m.running), compareRefs)
			w.step(t, Registered{Conn: m.conn, Register: r})
		}
	}
	id := w.newID()
	w.restart[id] = wire.Restart{Attempts: 3, Delay: time.Second}.WithDefaults()
	w.jobs = append(w.jobs, id)
	w.step(t, Submitted{ID: id, Spec: wire.JobSpec{Restart: w.restart[id]}, Slots: rapid.IntRange(2, 9).Draw(t, "slots")})
	for range 10 {
		w.live(t, 1)
		for _, m := range w.managers {
			for _, ref := range slices.SortedFunc(maps.Keys(m.running), compareRefs) {
				if ref.Job == id && m.conn != 0 && !m.told[ref] && !w.said[ref][saidPrepared] {
					w.goOn(t, m, ref)
				}
			}
		}
	}
}

// keep ends a worker of a job that is deployed or runs. Workers that then have to end keep their processes.
func (w *world) keep(t *rapid.T) {
	if rapid.Bool().Draw(t, "begin") {
		w.begin(t)
	}
	var victim *manager
	var dies wire.WorkerRef
	for _, m := range w.managers {
		for _, ref := range slices.SortedFunc(maps.Keys(m.running), compareRefs) {
			if m.conn != 0 && (w.seen[ref.Job] == wire.JobDeploying || w.seen[ref.Job] == wire.JobRunning) {
				victim, dies = m, ref
			}
		}
	}
	if victim == nil {
		return
	}
	delete(victim.running, dies)
	w.step(t, Reported{Conn: victim.conn, WorkerEvent: wire.WorkerEvent{WorkerRef: dies, Ended: &wire.Ended{
		Failure: &wire.Failure{Kind: wire.LostFailure, Signal: "killed", ExitCode: -1}, Crashed: true,
	}}})
	for _, m := range w.managers {
		for _, ref := range slices.SortedFunc(maps.Keys(m.running), compareRefs) {
			if m.conn != 0 && ref.Job == dies.Job && m.told[ref] {
				delete(m.running, ref)
				w.step(t, Reported{Conn: m.conn, WorkerEvent: wire.WorkerEvent{WorkerRef: ref, Ended: &wire.Ended{Kept: true}}})
			}
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "cancelled") == 0 {
		w.step(t, CancelAsked{ID: dies.Job, Reason: "enough"})
	}
	w.live(t, rapid.IntRange(0, 30).Draw(t, "ticks"))
}

// takes gives the kept process of a job to its next worker.
func (m *manager) takes(d *wire.Deployment) {
	if d.Mode == wire.RunMode {
		maps.DeleteFunc(m.kept, func(ref wire.WorkerRef, _ bool) bool { return ref.Job == d.Job })
	}
}

// waiting returns the workers whose processes wait on a task manager that is connected.
func (w *world) waiting() (all []wire.WorkerRef) {
	for _, m := range w.managers {
		if w.core.conns[m.conn] != nil {
			all = append(all, m.lists()...)
		}
	}
	return all
}

// noneKept is called when worker ref starts. It requires that all processes of earlier attempts are in use,
// or were told to exit.
func (w *world) noneKept(t require.TestingT, ref wire.WorkerRef) {
	for _, kept := range w.waiting() {
		require.False(t, kept.Job == ref.Job && kept.Attempt < ref.Attempt, "%s starts, and the process of %s waits", ref, kept)
	}
}

// checkKept requires that processes wait only for a job that may go on.
func (w *world) checkKept(t require.TestingT) {
	for _, kept := range w.waiting() {
		j := w.core.jobs[kept.Job]
		require.NotNil(t, j, "%s", kept)
		require.True(t, j.goesOn(), "the process of %s waits, and the job is %s", kept, j.info.State)
	}
	for _, j := range w.core.jobs {
		for _, k := range j.kept {
			require.True(t, w.core.taskManagers[k.taskManager.ID] == k.taskManager, "its task manager must not be lost")
		}
	}
}
