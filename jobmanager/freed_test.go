package jobmanager

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

const manyRows = 200 << 10

// runWithoutCommit runs a job that collects rows and prints text, and then fails or is cancelled.
func runWithoutCommit(t *testing.T, c *wire.Client, tm *manager, cancelled bool) wire.JobID {
	id := submit(t, c, specOf(t, 1))
	d := tm.run()
	s := tm.deliver(d.WorkerRef)
	for _, piece := range []*wire.Delivery{
		{Output: &wire.Output{Text: []byte("first")}}, collected(strings.Repeat("x", manyRows)), collected("y"),
		{Output: &wire.Output{Text: []byte("last")}}, collected("z"), {Log: []byte("why\n")},
	} {
		require.NoError(t, s.Send(piece))
	}
	_, err := s.CloseAndRecv()
	require.NoError(t, err)
	if cancelled {
		_, err := c.Cancel(bounded(t), &wire.CancelRequest{Job: id})
		require.NoError(t, err)
		require.NotNil(t, tm.next().Worker.Cancel)
		tm.ended(d.WorkerRef, nil)
	} else {
		tm.ended(d.WorkerRef, &wire.Failure{Kind: wire.UserFailure, Message: "boom"})
	}
	return id
}

// TestRowsOfNoUse requires that the rows of a failed or cancelled job are freed when the job
// has no follower any more. The job's states, printed text and logs must stay, and events must
// keep their numbers.
func TestRowsOfNoUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, func(c *Config) { c.Dir = dir })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	size := func(id wire.JobID) int64 {
		info, err := os.Stat(dir + "/" + spoolName(id))
		require.NoError(t, err)
		return info.Size()
	}
	read := func(c *wire.Client, id wire.JobID, from uint64) (story []string, last uint64) {
		stream, err := c.Follow(bounded(t), &wire.FollowRequest{Job: id, From: from})
		require.NoError(t, err)
		for {
			e, err := stream.Recv()
			if err != nil {
				require.ErrorContains(t, err, "EOF")
				return story, last
			}
			require.Greater(t, e.Number, last)
			last = e.Number
			switch {
			case e.State != nil:
				story = append(story, e.State.State.String())
			case e.Output != nil:
				story = append(story, "text "+string(e.Output.Text))
			default:
				story = append(story, "rows")
			}
		}
	}
	for _, cancelled := range []bool{false, true} {
		// A follower that reads slowly must still get all rows.
		end, all := make(chan struct{}), make(chan int)
		id := runWithoutCommit(t, c, tm, cancelled)
		held := make(chan struct{})
		go func() {
			rows := 0
			_ = m.Watch(bounded(t), &wire.FollowRequest{Job: id}, func(e *wire.Event) error {
				if e.Number == 1 {
					close(held)
					<-end
				}
				if e.Collected != nil {
					rows += len(e.Collected.Rows)
				}
				return nil
			})
			all <- rows
		}()
		<-held
		eventually(t, "the job is no longer in m.jobs", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.jobs) == 0 })
		require.Greater(t, size(id), int64(manyRows))
		close(end)
		require.Equal(t, manyRows+2, <-all)

		eventually(t, "the rows are freed", func() bool { return size(id) < manyRows/10 })
		state := map[bool][]string{false: {"failed"}, true: {"cancelling", "cancelled"}}[cancelled]
		want := append([]string{"deploying", "running", "text first", "text last"}, state...)
		story, last := read(c, id, 0)
		require.Equal(t, want, story[len(story)-len(want):])
		require.NotContains(t, story, "rows")
		tail, number := read(c, id, last)
		require.Equal(t, state[len(state)-1:], tail)
		require.Equal(t, last, number)
		tail, _ = read(c, id, last-uint64(len(state)))
		require.Equal(t, state, tail, "a follower that begins within a gap must get the events after the gap")
		require.Equal(t, "why\n", logsOf(t, c, &wire.LogsRequest{Job: id, Worker: -1}))
		eventually(t, "the recorded size of the files is their real size", func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.files.sizes[id] == m.sizeOf(id) && m.files.total < manyRows
		})
	}
}

// TestRowsOfNoUseAfterARestart requires that a job manager frees rows of jobs without results
// that the former job manager did not free, even if the disk has no space for another file. It
// must keep the rows of a job that may have finished.
func TestRowsOfNoUseAfterARestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		full, doubt bool
	}{{false, false}, {true, false}, {false, true}} {
		dir := t.TempDir()
		m := start(t, func(c *Config) { c.Dir = dir })
		client := dial(t, m, testToken, nil)
		id := submit(t, client, specOf(t, 1))
		tm := join(t, client, registration("a", 1))
		s := tm.deliver(tm.run().WorkerRef)
		require.NoError(t, s.Send(collected(strings.Repeat("x", manyRows))))
		_, err := s.CloseAndRecv()
		require.NoError(t, err)
		_, err = client.Cancel(bounded(t), &wire.CancelRequest{Job: id})
		require.NoError(t, err)
		require.NoError(t, m.Close()) // the worker has not ended; the job is recorded as cancelled after this

		if c.doubt {
			require.NoError(t, os.WriteFile(dir+"/"+historyName, bytes.Repeat([]byte("garbage "), 4096), 0o600))
		}
		path := dir + "/" + spoolName(id)
		if c.full { // no other file can be created in the job's directory
			require.NoError(t, os.MkdirAll(path+".new/x", 0o700))
		}
		m = start(t, func(c *Config) { c.Dir = dir })
		small := func() bool {
			info, err := os.Stat(path)
			require.NoError(t, err)
			return info.Size() < manyRows/10
		}
		if c.doubt {
			require.NoError(t, m.Close())
			require.False(t, small())
			continue
		}
		eventually(t, "the rows are freed", small)
		story, last := follow(t, dial(t, m, testToken, nil), &wire.FollowRequest{Job: id, From: 100})
		require.Empty(t, story)
		require.Nil(t, last)
	}
}

// TestPrintedTextOfNoUse requires that the last part of the printed text is kept if a job did
// not finish.
func TestPrintedTextOfNoUse(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *Config) { c.MaxLog = 10 })
	require.NoError(t, m.root.MkdirAll(jobDir("a"), 0o700))
	s := newSpool("a", 1000, func() (*os.File, error) {
		return m.root.OpenFile(spoolName("a"), os.O_CREATE|os.O_RDWR, 0o600)
	})
	for _, text := range []string{"one", "rows", "twelve bytes", "four", "five5", "six"} {
		e := &wire.Event{Output: &wire.Output{Text: []byte(text)}}
		if text == "rows" {
			e = rows(0, text)
		}
		require.NoError(t, s.append(e))
	}
	_, err := s.seal()
	require.NoError(t, err)
	_, err = m.dropRows("a")
	require.NoError(t, err)
	for range 2 { // the second call must change nothing
		data, err := m.root.ReadFile(spoolName("a"))
		require.NoError(t, err)
		r := spoolReader{file: bytes.NewReader(data), seed: spoolSeed("a")}
		for i, text := range []string{"five5", "six"} {
			e, err := r.next(int64(len(data)), 0)
			require.NoError(t, err)
			require.EqualValues(t, 5+i, e.Number)
			require.Equal(t, text, string(e.Output.Text))
		}
		freed, err := m.dropRows("a")
		require.NoError(t, err)
		require.Zero(t, freed)
	}
}
