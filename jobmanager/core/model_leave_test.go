package core

import (
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/wire"
)

// This file has the part of the model for task managers that announce that they leave.

// announce makes a task manager announce that it leaves, if it is connected, and sometimes lets the time
// pass until it leaves. It repeats the announcement whenever it registers again.
func (w *world) announce(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
		return
	}
	m := w.some(t)
	if rapid.Bool().Draw(t, "busy") {
		for _, o := range w.managers {
			for ref := range o.running {
				if o.conn != 0 && w.seen[ref.Job] == wire.JobRunning {
					m = o
				}
			}
		}
	}
	m.leaving = &wire.Leaving{Reason: "reason", Within: time.Duration(rapid.IntRange(-1, 4).Draw(t, "within")) * time.Second}
	w.step(t, LeaveAnnounced{Conn: m.conn, Leaving: *m.leaving})
	if m.conn != 0 {
		w.live(t, rapid.IntRange(0, 60).Draw(t, "ticks"))
	}
}

// heed records an announcement after the core has processed it.
func (w *world) heed(e Event) {
	var conn int
	var l *wire.Leaving
	switch e := e.(type) {
	case LeaveAnnounced:
		conn, l = e.Conn, &e.Leaving
	case Registered:
		conn, l = e.Conn, e.Leaving
	}
	n := w.core.conns[conn]
	if n == nil || l == nil {
		return
	}
	by := w.core.clock.Counted() + max(0, l.Within)
	if before, ok := w.leaves[n]; ok {
		by = min(by, before)
	}
	w.leaves[n] = by
}

// departs reports whether a task manager has announced that it leaves.
func (w *world) departs(n *taskManager) bool {
	_, ok := w.leaves[n]
	return ok
}

// checkLeaving requires that no job is left on a task manager whose time to leave is over, except jobs
// that commit or that end, and givers, and that no job has its graph resolved on a task manager that leaves.
func (w *world) checkLeaving(t require.TestingT, n *taskManager) {
	by, ok := w.leaves[n]
	if !ok {
		return
	}
	for ref, k := range n.workers {
		require.False(t, k.job.resolver == k && k.ordered == notOrdered, "worker %s must not resolve on a task manager that leaves", ref)
		if k.mode != wire.ResolveMode && !k.gives() && w.core.clock.Counted() > by {
			require.NotContains(t, []wire.JobState{wire.JobDeploying, wire.JobRunning}, k.job.info.State, "job %s must have left", ref.Job)
		}
	}
}
