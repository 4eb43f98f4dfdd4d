package jobmanager

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

func TestOldJobsForgotten(t *testing.T) {
	dir := t.TempDir()
	m := start(t, func(c *Config) { c.KeepJobs, c.Dir = 2, dir })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	var ids []wire.JobID
	for range 4 {
		ids = append(ids, submit(t, c, specOf(t, 1)))
		d := tm.run()
		s := tm.deliver(d.WorkerRef)
		require.NoError(t, s.Send(collected("x")))
		_, err := s.CloseAndRecv()
		require.NoError(t, err)
		tm.succeed(d.WorkerRef, "o")
	}
	eventually(t, "files of old jobs are gone", func() bool {
		entries, err := os.ReadDir(dir + "/" + jobsDir)
		require.NoError(t, err)
		return len(entries) == 2
	})
	_, err := c.Show(bounded(t), &wire.ShowRequest{Job: ids[0]})
	require.Equal(t, codes.NotFound, wire.Code(err))
	require.NoError(t, m.Close())
	m = start(t, func(c *Config) { c.KeepJobs, c.Dir = 2, dir })
	list, err := dial(t, m, testToken, nil).List(bounded(t), &wire.ListRequest{})
	require.NoError(t, err)
	require.Len(t, list.Jobs, 2)
	require.ElementsMatch(t, ids[2:], []wire.JobID{list.Jobs[0].ID, list.Jobs[1].ID})
}

// Jobs that are forgotten before they are on record do not come back.
func TestForgottenAtOnce(t *testing.T) {
	m := start(t, func(c *Config) { c.KeepJobs = 1 })
	c := dial(t, m, testToken, nil)
	var ids []wire.JobID
	for range 20 {
		ids = append(ids, submit(t, c, specOf(t, 1)))
	}
	for _, id := range ids {
		_, err := m.Cancel(context.Background(), &wire.CancelRequest{Job: id})
		require.NoError(t, err)
	}
	eventually(t, "all are over", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.jobs) == 0 })
	require.NoError(t, m.told(bounded(t)))
	records, err := m.history.all()
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.Equal(t, ids[19], records[0].Info.ID)
	require.Len(t, m.past, 1)
	eventually(t, "its files alone are there", func() bool {
		entries, err := os.ReadDir(m.config.Dir + "/" + jobsDir)
		require.NoError(t, err)
		return len(entries) == 1
	})
}

// The files of old jobs make room for those of new ones; what is known of them stays.
func TestOldResultsMakeRoom(t *testing.T) {
	dir := t.TempDir()
	in := func(c *Config) { c.KeepBytes, c.Dir = 2500, dir }
	m := start(t, in)
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	var ids []wire.JobID
	for range 4 {
		id := submit(t, c, specOf(t, 1))
		d := tm.run()
		s := tm.deliver(d.WorkerRef)
		require.NoError(t, s.Send(collected(strings.Repeat("x", 400))))
		require.NoError(t, s.Send(&wire.Delivery{Log: []byte(strings.Repeat("y", 300) + "\n")}))
		_, err := s.CloseAndRecv()
		require.NoError(t, err)
		tm.succeed(d.WorkerRef, "o")
		ids = append(ids, id)
	}
	kept := func() (left []string) {
		entries, err := os.ReadDir(dir + "/" + jobsDir)
		require.NoError(t, err)
		for _, e := range entries {
			left = append(left, e.Name())
		}
		return left
	}
	eventually(t, "the oldest files are gone", func() bool { return len(kept()) == 1 })
	for range 2 { // the second time after a restart
		require.Equal(t, []string{string(ids[3])}, kept())
		stream, err := c.Follow(bounded(t), &wire.FollowRequest{Job: ids[0]})
		require.NoError(t, err)
		_, err = stream.Recv()
		require.Equal(t, codes.DataLoss, wire.Code(err))
		require.ErrorContains(t, err, "--keep-bytes")
		shown, err := c.Show(bounded(t), &wire.ShowRequest{Job: ids[0]})
		require.NoError(t, err)
		require.Equal(t, wire.JobFinished, shown.State)
		require.Empty(t, logsOf(t, c, &wire.LogsRequest{Job: ids[0], Worker: -1}))
		story, _ := follow(t, c, &wire.FollowRequest{Job: ids[3]})
		require.Equal(t, "finished", story[len(story)-1])
		require.NoError(t, m.Close())
		m = start(t, in)
		c = dial(t, m, testToken, nil)
	}
}

func TestFilesWithoutRecordSwept(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/"+jobDir("stray"), 0o700))
	start(t, func(c *Config) { c.Dir = dir })
	entries, err := os.ReadDir(dir + "/" + jobsDir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
