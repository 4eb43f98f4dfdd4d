package jobmanager

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestCheckpointsOfAJob requires that a job shows what its attempts have written, that statistics
// count it, that neither lists nor events have it, and that it is on record when the job has ended.
func TestCheckpointsOfAJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, func(c *Config) { c.Dir = dir })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	spec := specOf(t, 1)
	spec.Run.Checkpoints = &wire.Checkpoints{Dir: "/shared"}
	spec.Restart = wire.Restart{Strategy: wire.RestartFixedDelay, Attempts: 1, Delay: 50 * time.Millisecond}
	id := submit(t, c, spec)
	wrote := func(d *wire.Deployment, number, written int) wire.WrittenCheckpoint {
		w := wire.WrittenCheckpoint{Number: number, Written: time.Now().UTC().Truncate(time.Second), Seconds: 0.5, Bytes: 100, Queues: []wire.OriginQueue{{Name: "q", Superstep: 10 * number}}}
		tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Checkpointed: &wire.Checkpointed{
			Written: written, Bytes: 100, Seconds: 0.5, Newest: []wire.WrittenCheckpoint{w},
			Failed: 1, Failing: &wire.FailedCheckpoints{Since: w.Written, Count: 1, Error: "no space left"},
		}})
		return w
	}
	show := func(c *wire.Client) *wire.JobCheckpoints {
		info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
		require.NoError(t, err)
		for i := range info.Checkpoints.Newest { // times come in the zone of the reader
			info.Checkpoints.Newest[i].Written = info.Checkpoints.Newest[i].Written.UTC()
		}
		info.Checkpoints.Failing.Since = info.Checkpoints.Failing.Since.UTC()
		return info.Checkpoints
	}

	first := tm.run()
	one := wrote(first, 1, 1)
	eventually(t, "the first report", func() bool { return m.Stats().Checkpoints == 1 })
	require.Contains(t, m.Stats().CheckpointAges, id)
	tm.ended(first.WorkerRef, &wire.Failure{Kind: wire.LostFailure, Message: "killed"})
	second := tm.run()
	two := wrote(second, 2, 1)
	eventually(t, "the second report", func() bool { return m.Stats().Checkpoints == 2 })
	list, err := c.List(bounded(t), &wire.ListRequest{})
	require.NoError(t, err)
	require.Nil(t, list.Jobs[0].Checkpoints)
	tm.succeed(second.WorkerRef, "")
	_, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFinished, last.State)
	require.Nil(t, last.Checkpoints)

	want := &wire.JobCheckpoints{Dir: "/shared", Checkpointed: wire.Checkpointed{
		Written: 2, Failed: 2, Bytes: 200, Seconds: 1, Newest: []wire.WrittenCheckpoint{one, two},
		Failing: &wire.FailedCheckpoints{Since: two.Written, Count: 1, Error: "no space left"},
	}}
	require.Equal(t, want, show(c))
	s := m.Stats()
	require.Equal(t, []any{uint64(2), uint64(2), uint64(200), 1.0, uint64(1)}, []any{s.Checkpoints, s.FailedCheckpoints, s.CheckpointBytes, s.CheckpointSeconds, s.Restarts})
	require.Equal(t, map[wire.FailureKind]uint64{wire.LostFailure: 1}, s.Lost)
	require.Empty(t, s.CheckpointAges)

	tm.leave()
	require.NoError(t, m.Close())
	again := start(t, func(c *Config) { c.Dir = dir })
	require.Equal(t, want, show(dial(t, again, testToken, nil)))
	require.Zero(t, again.Stats().Checkpoints)
}
