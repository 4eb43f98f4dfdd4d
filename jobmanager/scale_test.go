package jobmanager

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// fill records finished jobs, each with twenty workers and thirty vertices.
func fill(t testing.TB, dir string, jobs int) {
	m := start(t, func(c *Config) { c.Dir = dir })
	var changes []change
	for i := range jobs {
		at := time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)
		info := wire.JobInfo{
			ID: wire.JobID(fmt.Sprintf("20260101-%06d-job-%04x", i, i)), Name: "job", State: wire.JobFinished,
			Parallelism: 200, Slots: 200, Shards: 1024, Attempt: 1, Artifact: hashOf([]byte("x")), Fingerprint: hashOf([]byte("y")),
			Submitted: at, Started: at, Ended: at.Add(time.Minute),
			Progress: &wire.Progress{Vertices: make([]wire.VertexProgress, 30)},
			Outcomes: [][]byte{make([]byte, 4096)},
		}
		for w := range 20 {
			info.Workers = append(info.Workers, wire.Placed{TaskManager: fmt.Sprintf("host-%d:6121", w), Slots: wire.SlotRange{Lo: w * 10, Hi: w*10 + 10}, Address: fmt.Sprintf("host-%d:40000", w)})
		}
		c, err := newChange(record{Info: info, Whole: true})
		require.NoError(t, err)
		c.plan = bytes.Repeat([]byte("plan "), 10_000)
		changes = append(changes, c)
	}
	require.NoError(t, m.history.write(changes))
	require.NoError(t, m.Close())
}

func heap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestThousandFinishedJobs requires that a thousand finished jobs take little memory and can be
// listed quickly.
func TestThousandFinishedJobs(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 1000)
	before := heap()
	m := start(t, func(c *Config) { c.Dir = dir })
	grown := int64(heap()) - int64(before)
	require.Less(t, grown, int64(30<<20), "a thousand finished jobs must take less than this number of bytes of heap")
	fastest := time.Hour
	for range 10 { // the fastest of ten runs counts, because other processes may slow down some of them
		begin := time.Now()
		list, err := m.List(context.Background(), &wire.ListRequest{})
		fastest = min(fastest, time.Since(begin))
		require.NoError(t, err)
		require.Len(t, list.Jobs, 1000)
		require.True(t, list.Jobs[0].Submitted.After(list.Jobs[999].Submitted))
		require.Nil(t, list.Jobs[0].Progress)
	}
	t.Logf("1000 finished jobs: %d KiB of heap, listed in %s", grown>>10, fastest)
	shown, err := m.Show(context.Background(), &wire.ShowRequest{Job: "20260101-000007"})
	require.NoError(t, err)
	require.Len(t, shown.Plan, 50_000)
	require.Len(t, shown.Outcomes[0], 4096)
}

func BenchmarkListThousandJobs(b *testing.B) {
	dir := b.TempDir()
	fill(b, dir, 1000)
	c := dial(b, start(b, func(c *Config) { c.Dir = dir }), testToken, nil)
	b.ResetTimer()
	for b.Loop() {
		if _, err := c.List(context.Background(), &wire.ListRequest{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkJob measures the time that the job manager needs for one job of one worker from
// submission to end, including the flushes of the history.
func BenchmarkJob(b *testing.B) {
	m := start(b)
	c := dial(b, m, testToken, nil)
	tm := join(b, c, registration("a", 1))
	for b.Loop() {
		id := submit(b, c, specOf(b, 1))
		tm.succeed(tm.run().WorkerRef, "o")
		follow(b, c, &wire.FollowRequest{Job: id})
	}
}
