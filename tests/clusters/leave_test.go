//go:build linux && !race

package clusters

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestDevLeavesAtOnce ends a cluster of one command while a job runs there. Its task managers must not
// stay for the job, which has nowhere else to go, until the command kills them.
func TestDevLeavesAtOnce(t *testing.T) {
	t.Parallel()
	var d *devCluster
	t.Cleanup(func() { // after the cleanup of startDev, which waits for the last output
		says(t, d.output.String(), "killing the worker")
		require.NotContains(t, d.output.String(), "ended: signal: killed")
	})
	d = startDev(t, 1, 1)
	job := proctest.Command(programs.Build(t, "./tests/clusterjobs"), "--cluster", d.address, "--parallelism", "1", "--steps", "1000000", "--pause", "1ms", "--progress", "json")
	job.Env = append(os.Environ(), d.environ...)
	said := new(transcript)
	job.Stderr = said
	require.NoError(t, job.Start())
	require.Eventually(t, func() bool { return strings.Contains(said.String(), `"step":`) }, waitLimit, time.Millisecond, "%s", said)
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool { return gone(d.cmd.Process.Pid) }, waitLimit, time.Millisecond)
	_ = job.Process.Kill() // it would try to reach the job manager again for a minute
	_ = job.Wait()
}

// TestTaskManagerLeaves sends SIGTERM to one of two task managers while a job with checkpoints runs on
// both. The job has no restarts. It must go on with the other one from its last superstep, and have
// the results of an undisturbed run, byte for byte. The task manager must end with exit code 0, long
// before its time is over.
func TestTaskManagerLeaves(t *testing.T) {
	t.Parallel()
	m := startShortTimeouts(t)
	dir := t.TempDir()
	path := programs.Build(t, "./tests/clusterjobs")
	args := func(name string) []string {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		return []string{"--steps", "500", "--output", filepath.Join(dir, name, "rows.csv")}
	}
	undisturbed := programs.Execute(t, nil, path, append(args("want"), "--progress", "off")...)
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)

	checkpoints := filepath.Join(dir, "checkpoints")
	c := m.start(append(args("got"), "--pause", "3ms", "--parallelism", "2", "--restart", "none", "--checkpoint-dir", checkpoints, "--checkpoint-every", "1h")...)
	workers := m.runs(c, 1)
	m.reaches(c, 5)
	began := time.Now()
	require.NoError(t, m.tasks[0].Process.Signal(syscall.SIGTERM))
	require.NoError(t, m.tasks[0].Wait(), "the task manager must end with exit code 0")
	require.Less(t, time.Since(began), 20*time.Second, "the task manager must end when its worker has ended")
	require.True(t, gone(workers[0]))
	require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)

	require.Equal(t, undisturbed.Stdout, c.out.String())
	require.Equal(t, filesBelow(t, filepath.Join(dir, "want")), filesBelow(t, filepath.Join(dir, "got")))
	require.Empty(t, filesBelow(t, checkpoints))
	j := m.jobs()[0]
	require.Equal(t, "finished", j.State)
	require.Equal(t, 2, j.Attempt)
	require.Zero(t, j.Restarts, "an announced loss does not count as a restart")
	require.Len(t, j.Lost, 1)
	require.Equal(t, "task manager tm0 leaves (terminated signal received)", j.Lost[0].Cause)
	says(t, c.err.String(), `"state":"running","detail":"from checkpoint`)
	says(t, m.output.String(), "waits until its jobs go on elsewhere or have ended: jobs="+j.ID+" until=")
	m.startTask(0)
	m.requireFree()
}

// TestTaskManagerLeavesAtOnce sends SIGTERM to one of two task managers while a job without checkpoints
// runs on both, and again while the task manager waits for the job. It must then end at once. The job
// has no restarts, but its loss was announced. So it must begin again on the other one, and have the
// results of an undisturbed run.
func TestTaskManagerLeavesAtOnce(t *testing.T) {
	t.Parallel()
	m := startShortTimeouts(t)
	path := programs.Build(t, "./tests/clusterjobs")
	undisturbed := programs.Execute(t, nil, path, "--steps", "150", "--progress", "off")
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)

	c := m.start("--steps", "150", "--pause", "20ms", "--parallelism", "2", "--restart", "none")
	m.runs(c, 1)
	require.NoError(t, m.tasks[0].Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool { return strings.Contains(m.output.String(), "waits until its jobs go on elsewhere") }, waitLimit, time.Millisecond)
	require.NoError(t, m.tasks[0].Process.Signal(syscall.SIGTERM))
	require.NoError(t, m.tasks[0].Wait(), "the task manager must end with exit code 0")
	require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)

	require.Equal(t, undisturbed.Stdout, c.out.String())
	says(t, m.output.String(), "leaves at once, as it was told to stop again")
	j := m.jobs()[0]
	require.Zero(t, j.Restarts)
	require.Len(t, j.Lost, 1)
	require.Equal(t, "the task manager was stopped (worker 0 on task manager tm0)", j.Lost[0].Cause)
	m.startTask(0)
	m.requireFree()
}
