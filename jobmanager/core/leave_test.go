package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestLeaves requires that announced losses are limited within a window that slides, and that a
// restarted job manager knows them.
func TestLeaves(t *testing.T) {
	const step = leavesWindow / (2 * maxLeaves)
	r, now := restarts{}, time.Duration(0)
	for i := range maxLeaves {
		require.True(t, r.leaves(now), "loss %d", i)
		now += step
	}
	require.False(t, r.leaves(now))
	require.False(t, r.leaves(leavesWindow-1))
	again := restarts{}
	again.restore(r.history(now), 0)
	require.False(t, again.leaves(leavesWindow-now-1))
	require.True(t, again.leaves(leavesWindow-now))
	require.False(t, again.leaves(leavesWindow-now))
	require.True(t, again.leaves(leavesWindow-now+step))
	require.Zero(t, r.count)
}

// TestLeavesForEver drains the task manager of a job again and again. Up to the limit that does not
// count, whatever the strategy is. Then it counts as any other loss.
func TestLeavesForEver(t *testing.T) {
	c := New(Config{})
	c.Step(0, Registered{Conn: 1, Register: wire.Register{Version: wire.Version, ID: "a", Incarnation: "1", Slots: 1, Executable: anyHash}})
	c.Step(0, Submitted{ID: "j", Slots: 1, Spec: wire.JobSpec{Restart: wire.Restart{Strategy: wire.RestartNone}}})
	now := time.Duration(0)
	for attempt := 1; attempt <= maxLeaves+1; attempt++ {
		info, _ := c.Job("j")
		require.Equal(t, wire.JobDeploying, info.State)
		require.Equal(t, attempt, info.Attempt)
		c.Step(now, Persisted{ID: "j", Attempt: attempt})
		c.Step(now, Cordoned{TaskManager: "a", Cordon: wire.Cordon{Drained: true}})
		c.Step(now, Drained{TaskManager: "a"})
		c.Step(now, Uncordoned{TaskManager: "a"})
		c.Step(now, Reported{Conn: 1, WorkerEvent: wire.WorkerEvent{WorkerRef: wire.WorkerRef{Job: "j", Attempt: attempt}, Ended: &wire.Ended{}}})
		now += TickEvery
		c.Step(now, Heartbeat{Conn: 1})
		c.Step(now, Tick{})
	}
	info, _ := c.Job("j")
	require.Equal(t, wire.JobFailed, info.State)
	require.Zero(t, info.Restarts)
	require.Len(t, info.Lost, wire.MaxLost)
	require.Equal(t, fmt.Sprintf("task manager a is drained; the job has already left task managers %d times within 1h0m0s, and --restart is none", maxLeaves), info.Failure.Message)
}

// TestAnnouncementsThatLie requires that an announcement with a senseless time or a long reason does no
// harm.
func TestAnnouncementsThatLie(t *testing.T) {
	for _, within := range []time.Duration{-1 << 63, -1, 0, 1<<63 - 1} {
		c := New(Config{})
		c.Step(0, Registered{Conn: 1, Register: wire.Register{Version: wire.Version, ID: "a", Incarnation: "1", Slots: 1, Executable: anyHash}})
		c.Step(0, Submitted{ID: "j", Slots: 1})
		c.Step(0, LeaveAnnounced{Conn: 1, Leaving: wire.Leaving{Reason: string(make([]byte, 1<<20)), Within: within}})
		c.Step(0, LeaveAnnounced{Conn: 2})
		d := c.taskManagers["a"].departure
		require.Positive(t, d.by)
		require.LessOrEqual(t, d.by, maxWithin)
		require.Less(t, len(d.reason), 2*maxText)
		info, _ := c.Job("j")
		require.Equal(t, wire.JobRestarting, info.State)
	}
}
