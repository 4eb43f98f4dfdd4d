//go:build linux && !race

package clusters

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestFormerAttemptStillRuns stops the task manager on which a job with one worker runs, so that
// the job manager loses it, while the worker computes on. The next attempt must begin and commit
// although the former worker is still there and the lease is long. The results must be those of an
// undisturbed run, byte for byte, before the task manager continues and after the former worker has
// ended, and no other files may be left.
func TestFormerAttemptStillRuns(t *testing.T) {
	t.Parallel()
	m := startProcesses(t, 2, 2, "--lease", "10m", "--placement", "pack")
	dir := t.TempDir()
	path := programs.Build(t, "./tests/clusterjobs")
	// The supersteps end before the task manager is lost: a worker that writes a checkpoint beside the next
	// attempt ends.
	args := func(name string) []string {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		return []string{"--steps", "220", "--output", filepath.Join(dir, name, "rows.csv")}
	}
	undisturbed := programs.Execute(t, nil, path, append(args("want"), "--progress", "off")...)
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)

	checkpoints := filepath.Join(dir, "checkpoints")
	c := m.start(append(args("got"), "--parallelism", "2", "--pause", "5ms",
		"--checkpoint-dir", checkpoints, "--checkpoint-every", "10steps", "--restart-delay", "50ms")...)
	require.Eventually(t, func() bool {
		found, err := filepath.Glob(filepath.Join(checkpoints, "checkpoint-*"))
		require.NoError(t, err)
		return len(found) > 0
	}, waitLimit, 5*time.Millisecond, "the job has written no checkpoint: %s", &c.err)
	workers := m.allWorkers()
	require.Len(t, workers, 1)
	on := slices.IndexFunc(m.tasks, func(p *proctest.Cmd) bool { return len(workersOf(t, p.Process.Pid)) == 1 })
	require.NoError(t, m.tasks[on].Process.Signal(syscall.SIGSTOP))

	require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)
	require.False(t, gone(workers[0]), "the former worker must be there all the time")
	require.Equal(t, undisturbed.Stdout, c.out.String())
	require.Contains(t, c.err.String(), "attempt 1 was lost: task manager tm")
	require.Equal(t, filesBelow(t, filepath.Join(dir, "want")), filesBelow(t, filepath.Join(dir, "got")))

	require.NoError(t, m.tasks[on].Process.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool { return gone(workers[0]) }, waitLimit, 20*time.Millisecond, "the former worker must end")
	m.requireFree()
	require.Equal(t, filesBelow(t, filepath.Join(dir, "want")), filesBelow(t, filepath.Join(dir, "got")))
	require.Empty(t, filesBelow(t, checkpoints))
}
