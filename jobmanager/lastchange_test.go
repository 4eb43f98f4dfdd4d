package jobmanager

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// metaPages returns the offsets of the newer and the older meta page of a bbolt file. A meta
// page has the position of the tree and, at byte 64, the number of the transaction that wrote
// it.
func metaPages(data []byte) (newer, older int) {
	second := os.Getpagesize()
	if binary.NativeEndian.Uint64(data[64:]) > binary.NativeEndian.Uint64(data[second+64:]) {
		return 0, second
	}
	return second, 0
}

// TestLastChange damages one of the two meta pages of a history after a job has finished. If
// the last change may be lost, the log must say so, and the detail of each job whose end is not
// recorded must say so too. Otherwise neither the log nor a detail may say so.
func TestLastChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, func(c *Config) { c.Dir = dir })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 2))
	running := submit(t, c, specOf(t, 1))
	tm.run()
	id := committing(t, tm, specOf(t, 1))
	ref := wire.WorkerRef{Job: id, Attempt: 1}
	require.NoError(t, m.awaitFollowers(bounded(t)))
	tm.says(wire.WorkerEvent{WorkerRef: ref, Committed: &wire.Committed{}})
	require.NotNil(t, tm.next().Worker.Exit)
	tm.ended(ref, nil)
	follow(t, c, &wire.FollowRequest{Job: id})
	require.NoError(t, m.Close())
	whole, err := os.ReadFile(dir + "/" + historyName)
	require.NoError(t, err)
	newer, older := metaPages(whole)
	number := func(at int) func([]byte) { return func(d []byte) { copy(d[at+64:at+72], "\x7f\x7f\x7f\x7f") } }
	sum := func(at int) func([]byte) { return func(d []byte) { d[at+72] ^= 0xff } }
	zero := func(at int) func([]byte) { return func(d []byte) { clear(d[at : at+80]) } }
	for name, c := range map[string]struct {
		damage func([]byte)
		lost   bool // the last change is lost
		doubt  bool // the last change may be lost
	}{
		"number of the newer": {number(newer), false, false},
		"number of the older": {number(older), false, false},
		"sum of the newer":    {sum(newer), true, true},
		"sum of the older":    {sum(older), false, false},
		"all of the newer":    {zero(newer), true, true},
		"all of the older":    {zero(older), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			from, dir := dir, t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
			bad := bytes.Clone(whole)
			c.damage(bad)
			require.NoError(t, os.WriteFile(dir+"/"+historyName, bad, 0o600))
			var lines bytes.Buffer
			in := func(c *Config) { c.Dir, c.Logger = dir, hclog.New(&hclog.LoggerOptions{Output: &lines}) }
			m := start(t, in)
			shown := func(id wire.JobID) *wire.JobInfo {
				info, err := dial(t, m, testToken, nil).Show(bounded(t), &wire.ShowRequest{Job: id})
				require.NoError(t, err)
				return info
			}
			const told = "its last change may be lost"
			is := func(text string, doubt bool) {
				t.Helper()
				require.Equal(t, doubt, strings.Contains(text, told), text)
			}
			other, job := shown(running), shown(id)
			is(other.Detail, c.doubt)
			if !c.doubt {
				require.Equal(t, wire.JobRunning, other.State, "the job must be taken up again")
				require.Contains(t, other.Detail, "the job manager restarted")
			} else {
				require.Equal(t, wire.JobFailed, other.State, "the job may have come further, and must not begin again")
				is(other.Failure.Message, true)
				require.Contains(t, other.Detail, "its last recorded state is running")
				require.NotContains(t, other.Detail, "restarted while it ran")
			}
			if !c.lost {
				require.Equal(t, wire.JobFinished, job.State)
				is(job.Detail, false)
				require.NoError(t, m.Close())
			} else {
				require.Equal(t, wire.JobCommitting, job.State)
				is(job.Detail, true)
				// The detail must still have the warning after another start and after the end
				// of the job.
				require.NoError(t, m.Close())
				m = start(t, in)
				is(shown(id).Detail, true)
				_, err := m.Cancel(bounded(t), &wire.CancelRequest{Job: id})
				require.NoError(t, err)
				is(shown(id).Detail, true)
				require.NoError(t, m.Close())
			}
			_, log, _ := strings.Cut(lines.String(), "THE HISTORY OF JOBS WAS DAMAGED")
			log, _, _ = strings.Cut(log, "job manager serves")
			is(log, c.doubt)
			require.Equal(t, c.doubt, !strings.Contains(log, "values lost=0 "), log)
			require.Equal(t, !c.doubt, strings.Contains(log, "nothing of it is lost"), log)
		})
	}
}

// TestBothBeginnings damages both meta pages. No value of the file can be read then, and the
// log must say so.
func TestBothBeginnings(t *testing.T) {
	t.Parallel()
	root := testRoot(t)
	data := filledHistory(t, root, 7)
	clear(data[:80])
	clear(data[os.Getpagesize() : os.Getpagesize()+80])
	require.NoError(t, root.WriteFile(historyName, data, 0o600))
	var lines bytes.Buffer
	h, err := openHistory(root, hclog.New(&hclog.LoggerOptions{Output: &lines}))
	require.NoError(t, err)
	require.NoError(t, h.close())
	require.Contains(t, lines.String(), "NOTHING OF IT COULD BE KEPT")
	require.NotContains(t, lines.String(), "what could be read is kept")
	require.Contains(t, lines.String(), `values kept=0 values lost="unknown how many"`)
}
