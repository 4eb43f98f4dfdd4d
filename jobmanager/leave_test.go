package jobmanager

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestLeaving lets a task manager announce that it leaves. A job without checkpoints must leave it when
// the time is over, and get no slots of it, also after the job manager was restarted. This holds only
// for the process that made the announcement.
func TestLeaving(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, func(c *Config) { c.Dir = dir })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 2))
	id := submit(t, c, specOf(t, 1))
	d := tm.run()
	announcement := &wire.Leaving{Reason: "preemption notice", Within: time.Millisecond}
	require.NoError(t, tm.send(&wire.FromTaskManager{Leaving: announcement}))
	require.Equal(t, "the attempt has ended: task manager tm-a leaves (preemption notice)", tm.next().Worker.Cancel.Reason)
	tm.ended(d.WorkerRef, nil)
	const waits = "waiting for 1 slot: there is no task manager of linux/amd64 that is not cordoned; 2 slots on task manager tm-a are cordoned"
	waiting := func() {
		t.Helper()
		eventually(t, "the job waits", func() bool {
			info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
			require.NoError(t, err)
			require.Zero(t, info.Restarts)
			return info.Detail == waits
		})
		require.Equal(t, "it leaves (preemption notice)", cordoned(t, c)["tm-a alive"].Reason)
	}
	waiting()
	require.NoError(t, m.Close())
	tm.leave()

	m = start(t, func(c *Config) { c.Dir = dir })
	c = dial(t, m, testToken, nil)
	r := registration("a", 2)
	r.Leaving = announcement
	tm = join(t, c, r)
	waiting()
	require.NoError(t, tm.send(&wire.FromTaskManager{Leave: &wire.Leave{Reason: "was stopped"}}))
	eventually(t, "the task manager has left", func() bool { _, left := cordoned(t, c)["tm-a left"]; return left })
	require.Nil(t, cordoned(t, c)["tm-a left"])

	r = registration("a", 2)
	r.Incarnation = "another"
	next := join(t, c, r)
	next.succeed(next.run().WorkerRef, "")
	_, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFinished, last.State)
}
