package jobmanager

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
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
	eventually(t, "the files of old jobs are removed", func() bool {
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

// TestForgottenAtOnce requires that jobs that are forgotten before they are recorded do not
// reappear.
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
	eventually(t, "no job is in m.jobs any more", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.jobs) == 0 })
	require.NoError(t, m.awaitFollowers(bounded(t)))
	var records []record
	eventually(t, "only one job is in the history", func() bool {
		var err error
		records, err = m.history.all()
		require.NoError(t, err)
		return len(records) == 1
	})
	require.Equal(t, ids[19], records[0].Info.ID)
	require.Len(t, m.past, 1)
	eventually(t, "only the files of this job are left", func() bool {
		entries, err := os.ReadDir(m.config.Dir + "/" + jobsDir)
		require.NoError(t, err)
		return len(entries) == 1
	})
}

// TestOldResultsMakeRoom requires that the files of old jobs are removed if the files of new
// jobs need the space, and that the records of the old jobs stay.
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
	eventually(t, "the files of the oldest jobs are removed", func() bool { return len(kept()) == 1 })
	for range 2 { // the second time, the job manager has been restarted
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

// TestFilesOfALostHistory removes the history or replaces it by an older copy. The results and
// logs of jobs that are not in the history any more must stay, and the log must say so. They
// must be readable again when the right history has been put back.
func TestFilesOfALostHistory(t *testing.T) {
	t.Parallel()
	for _, older := range []bool{false, true} {
		dir := t.TempDir()
		in := func(c *Config) { c.Dir = dir }
		m := start(t, in)
		require.NoError(t, m.Close())
		copied, err := os.ReadFile(dir + "/" + historyName)
		require.NoError(t, err)

		m = start(t, in)
		c := dial(t, m, testToken, nil)
		tm := join(t, c, registration("a", 1))
		var ids []wire.JobID
		var stories [][]string
		for range 2 {
			id := submit(t, c, specOf(t, 1))
			d := tm.run()
			s := tm.deliver(d.WorkerRef)
			require.NoError(t, s.Send(collected("rows")))
			require.NoError(t, s.Send(&wire.Delivery{Log: []byte("line\n")}))
			_, err := s.CloseAndRecv()
			require.NoError(t, err)
			tm.succeed(d.WorkerRef, "o")
			story, last := follow(t, c, &wire.FollowRequest{Job: id})
			require.Equal(t, wire.JobFinished, last.State)
			ids, stories = append(ids, id), append(stories, story)
		}
		require.NoError(t, m.Close())
		right, err := os.ReadFile(dir + "/" + historyName)
		require.NoError(t, err)

		require.NoError(t, os.Remove(dir+"/"+historyName))
		if older {
			require.NoError(t, os.WriteFile(dir+"/"+historyName, copied, 0o600))
		}
		var lines bytes.Buffer
		m = start(t, in, func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: &lines}) })
		require.NoError(t, m.Close())
		require.Equal(t, 1, strings.Count(lines.String(), "not on record"), "%s", &lines)
		require.Contains(t, lines.String(), "jobs=2")
		require.Contains(t, lines.String(), dir+"/"+jobsDir)

		require.NoError(t, os.WriteFile(dir+"/"+historyName, right, 0o600))
		lines.Reset()
		m = start(t, in, func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: &lines}) })
		c = dial(t, m, testToken, nil)
		for i, id := range ids {
			story, _ := follow(t, c, &wire.FollowRequest{Job: id})
			require.Equal(t, stories[i], story)
			require.Equal(t, "line\n", logsOf(t, c, &wire.LogsRequest{Job: id, Worker: -1}))
		}
		require.NoError(t, m.Close())
		require.NotContains(t, lines.String(), "not on record")
	}
}

// TestRemovalGoesOn requires that if a job manager stops while it removes files, the next job
// manager removes the remaining files, and does not take them for the files of a job whose
// record was lost.
func TestRemovalGoesOn(t *testing.T) {
	dir := t.TempDir()
	old := dir + "/" + removedDir + "/20260102-000001-job"
	require.NoError(t, os.MkdirAll(old, 0o700))
	require.NoError(t, os.WriteFile(old+"/events", []byte("events"), 0o600))
	start(t, func(c *Config) { c.Dir = dir })
	_, err := os.Stat(dir + "/" + removedDir)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestForgottenInOrder requires that the files of a forgotten job are moved to removedDir
// before the job's record is removed, so that a forgotten job never leaves files without a
// record.
func TestForgottenInOrder(t *testing.T) {
	m := start(t)
	require.NoError(t, m.root.MkdirAll(jobDir("old"), 0o700))
	require.NoError(t, m.root.WriteFile(spoolName("old"), []byte("events"), 0o600))
	c, err := newChange(record{Info: wire.JobInfo{ID: "old", State: wire.JobFinished}})
	require.NoError(t, err)
	require.NoError(t, m.history.write([]change{c}))
	inner := m.recorder.write
	before := make(chan error, 1)
	m.recorder.put(entry{then: func(error) {
		m.recorder.write = func(changes []change) error {
			for _, c := range changes {
				if c.forget {
					_, err := m.root.Stat(jobDir("old"))
					before <- err
				}
			}
			return inner(changes)
		}
	}})
	require.NoError(t, m.awaitFollowers(bounded(t)))
	m.mu.Lock()
	m.forget("old")
	m.mu.Unlock()
	require.ErrorIs(t, <-before, fs.ErrNotExist, "the files of a job must be moved away before its record is removed")
	eventually(t, "the moved files are removed", func() bool {
		_, err := m.root.Stat(removedDir + "/old")
		return errors.Is(err, fs.ErrNotExist)
	})
}
