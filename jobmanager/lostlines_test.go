package jobmanager

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestLostLinesAreNoted requires that if lines could not be written to a full disk, read
// reports at their position how many bytes are lost, before and after the log is opened again.
// Later lines must be stored.
func TestLostLinesAreNoted(t *testing.T) {
	root := testRoot(t)
	require.NoError(t, root.MkdirAll("jobs/j", 0o700))
	l := newWorklog(root, logPrefix("jobs/j", 3), 2000)
	fail := func(text string) {
		t.Helper()
		if l.file == nil { // make the creation of another file fail too
			name := l.name(l.end)
			require.NoError(t, root.Mkdir(name, 0o700))
			require.Error(t, l.write([]byte(text)))
			require.NoError(t, root.Remove(name))
			return
		}
		full, err := root.Open(l.name(0)) // opened for reading, so writes fail
		require.NoError(t, err)
		require.NoError(t, l.file.Close())
		l.file = full
		require.Error(t, l.write([]byte(text)))
	}
	require.NoError(t, l.write([]byte("first\nhalf a")))
	fail(" line\n")
	fail("more\n")
	text, at, dropped := readLog(t, l, 0)
	require.Equal(t, "first\nhalf a", text)
	require.EqualValues(t, 11, dropped)
	require.NoError(t, l.write([]byte("next\n")))
	fail("last\n")
	text, _, dropped = readLog(t, l, at)
	require.Equal(t, "next\n", text, "a reader that continues must get the next stored line")
	require.EqualValues(t, 5, dropped)
	require.NoError(t, l.close())
	again, err := openWorklog(root, "jobs/j", 3)
	require.NoError(t, err)
	for _, l := range []*worklog{l, again} {
		text, _, dropped = readLog(t, l, 0)
		require.Equal(t, "first\nhalf anext\n", text)
		require.EqualValues(t, 16, dropped)
	}
}

// TestManyLostLines makes a disk full repeatedly. Lines are lost then, but only a few files may
// be created.
func TestManyLostLines(t *testing.T) {
	root := testRoot(t)
	require.NoError(t, root.MkdirAll("jobs/j", 0o700))
	l := newWorklog(root, logPrefix("jobs/j", 0), 2000)
	for range 100 {
		require.NoError(t, l.write([]byte("line\n")))
		require.Error(t, l.lose([]byte("lost\n"), os.ErrInvalid))
	}
	entries, err := fs.ReadDir(root.FS(), "jobs/j")
	require.NoError(t, err)
	require.Len(t, entries, maxExtents)
	text, at, dropped := readLog(t, l, 0)
	require.Equal(t, strings.Repeat("line\n", maxExtents), text)
	require.EqualValues(t, 1000, at)
	require.EqualValues(t, 1000-len(text), dropped)
	require.NoError(t, l.close())
}

// TestRemovedLogIsNoted deletes a file of a log. read must report that the file's lines are
// lost, and later lines must be stored.
func TestRemovedLogIsNoted(t *testing.T) {
	root := testRoot(t)
	require.NoError(t, root.MkdirAll("jobs/j", 0o700))
	l := newWorklog(root, logPrefix("jobs/j", 0), 2000)
	require.NoError(t, l.write([]byte("first\n")))
	require.NoError(t, root.Remove(l.name(0)))
	text, at, dropped := readLog(t, l, 0)
	require.Empty(t, text)
	require.EqualValues(t, 6, dropped)
	require.NoError(t, l.write([]byte("second\n")))
	text, _, dropped = readLog(t, l, at)
	require.Equal(t, "second\n", text)
	require.Zero(t, dropped)
	require.NoError(t, l.close())
	again, err := openWorklog(root, "jobs/j", 0)
	require.NoError(t, err)
	text, _, dropped = readLog(t, again, 0)
	require.Equal(t, "second\n", text)
	require.EqualValues(t, 6, dropped)
}

// TestLogsNameTaskManagers restarts the job manager while a job of several workers commits.
// Afterwards each line of the logs must still name a task manager.
func TestLogsNameTaskManagers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(c *Config) { c.Dir, c.Lease = dir, 200e6 }
	m := start(t, in)
	c := dial(t, m, testToken, nil)
	a, b := join(t, c, registration("a", 1)), join(t, c, registration("b", 1))
	id := submit(t, c, specOf(t, 2))
	workers := map[int]*manager{}
	for _, tm := range []*manager{a, b} {
		d := tm.deployed()
		workers[d.Worker] = tm
		tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Ready: &wire.Ready{Address: "127.0.0.1:1", Fingerprint: "f"}})
	}
	require.NotNil(t, workers[0].next().Worker.Prepare)
	workers[0].says(wire.WorkerEvent{WorkerRef: wire.WorkerRef{Job: id, Attempt: 1}, Prepared: &wire.Prepared{}})
	names := func() map[int]string {
		found := map[int]string{}
		stream, err := c.Logs(bounded(t), &wire.LogsRequest{Job: id, Worker: -1})
		require.NoError(t, err)
		for {
			chunk, err := stream.Recv()
			if err != nil {
				require.ErrorContains(t, err, "EOF")
				return found
			}
			found[chunk.Worker] = chunk.TaskManager
		}
	}
	for n, tm := range workers {
		require.NotNil(t, tm.next().Worker.Start)
		ref := wire.WorkerRef{Job: id, Attempt: 1, Worker: n}
		s := tm.deliver(ref)
		require.NoError(t, s.Send(&wire.Delivery{Log: []byte("line\n")}))
		_, err := s.CloseAndRecv()
		require.NoError(t, err)
		tm.says(wire.WorkerEvent{WorkerRef: ref, Finished: &wire.Finished{Outcome: []byte("outcome")}})
	}
	require.NotNil(t, workers[0].next().Worker.Commit)
	want := names()
	require.Len(t, want, 2)
	require.NoError(t, m.Close())

	m = start(t, in)
	c = dial(t, m, testToken, nil)
	require.Equal(t, want, names())
	tm := join(t, c, registration("c", 1))
	d := tm.deployed()
	require.Equal(t, wire.CommitMode, d.Mode)
	now := names()
	require.Equal(t, want[1], now[1], "the worker that finishes the commit must be shown as worker 0")
	require.Equal(t, "tm-c", now[0])
	shown, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.Len(t, shown.Workers, 1, "only the worker that finishes the commit must be listed")
}
