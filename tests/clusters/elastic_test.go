//go:build linux && !race

package clusters

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestElastic runs an elastic job. It takes the slots that there are, grows when a task manager joins,
// is scaled by a client twice, and goes on with what is left when a task manager is killed. It must
// have the results of an undisturbed run, byte for byte.
func TestElastic(t *testing.T) {
	t.Parallel()
	m := startProcesses(t, 1, 2, "--settle", "300ms", "--scale-every", "300ms", "--detection", "2s", "--lease", "3s")
	dir := t.TempDir()
	path := programs.Build(t, "./tests/clusterjobs")
	undisturbed := programs.Execute(t, nil, path, "--steps", "500", "--progress", "off")
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)

	slow := filepath.Join(dir, "slow")
	require.NoError(t, os.WriteFile(slow, nil, 0o600))
	checkpoints := filepath.Join(dir, "checkpoints")
	require.NoError(t, os.Mkdir(checkpoints, 0o700))
	c := m.start("--steps", "500", "--pause", "500ms", "--while", slow, "--parallelism", "1:4", "--restart-delay", "100ms",
		"--checkpoint-dir", checkpoints, "--checkpoint-every", "1steps")
	id := ""
	runsWith := func(parallelism int) {
		t.Helper()
		var job struct {
			ID, State   string
			Parallelism int
		}
		require.Eventually(t, func() bool {
			jobs := m.jobs()
			if len(jobs) == 0 {
				return false
			}
			id = jobs[0].ID
			require.NoError(t, json.Unmarshal([]byte(m.client("show", id, "-o", "json").Stdout), &job))
			return job.State == "running" && job.Parallelism == parallelism
		}, waitLimit, askEvery, "the job must run with %d subtasks: %+v\n%s", parallelism, &job, &c.err)
	}
	runsWith(2)
	m.tasks = append(m.tasks, nil)
	m.startTask(1)
	runsWith(4)

	for text, want := range map[string]string{
		"0:3": `"0:3" begins below 1`, "5:2": "want the smaller number first, as in 2:5", "many": `"many" is neither a number of subtasks`,
	} {
		got := m.client("scale", id, text)
		require.Equal(t, 2, got.Code)
		says(t, got.Stderr, want)
	}
	got := m.client("scale", id, "256")
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, "above the number of shards, 128")
	got = m.client("scale", id, "3")
	require.Zero(t, got.Code, got.Stderr)
	says(t, got.Stdout, id+" may run at parallelism 3; it runs at 4 until it is saved")
	runsWith(3)
	says(t, m.client("show", id).Stdout, "it is scaled from 2 to 4 subtasks", "it is scaled from 4 to 3 subtasks", `queue "sums" continues after superstep`)
	got = m.client("scale", id, "2:4")
	require.Zero(t, got.Code, got.Stderr)
	runsWith(4)
	says(t, m.client("show", id).Stdout, "4 (2:4 allowed) of 128 shards")
	require.NoError(t, m.tasks[0].Process.Kill())
	_ = m.tasks[0].Wait()
	runsWith(2)
	says(t, m.client("show", id, "--plan", "text").Stdout, "parallelism 2")

	require.NoError(t, os.Remove(slow))
	require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)
	require.Equal(t, undisturbed.Stdout, c.out.String())
	job := m.jobs()[0]
	require.Equal(t, "finished", job.State)
	require.Equal(t, 1, job.Restarts, "scaling does not count as a restart")
	require.Len(t, job.Lost, 4)
	left, err := os.ReadDir(checkpoints)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestElasticInMemory runs an elastic job without checkpoints. It grows when a task manager joins, is
// scaled to the slots of one task manager, and leaves a task manager that is drained. It must continue
// from memory each time, make no row again, and have the results of an undisturbed run, byte for byte.
func TestElasticInMemory(t *testing.T) {
	t.Parallel()
	m := startProcesses(t, 1, 2, "--settle", "300ms", "--scale-every", "300ms")
	path := programs.Build(t, "./tests/clusterjobs")
	undisturbed := programs.Execute(t, nil, path, "--steps", "500", "--progress", "off")
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)

	slow := filepath.Join(t.TempDir(), "slow")
	require.NoError(t, os.WriteFile(slow, nil, 0o600))
	made := filepath.Join(t.TempDir(), "made")
	c := m.start("--steps", "500", "--pause", "200ms", "--while", slow, "--parallelism", "1:4", "--restart", "fixed-delay", "--restart-delay", "100ms", "--made", made)
	runsWith := func(parallelism, lost int) (id string) {
		t.Helper()
		require.Eventually(t, func() bool {
			jobs := m.jobs()
			if len(jobs) == 0 {
				return false
			}
			id = jobs[0].ID
			return jobs[0].State == "running" && jobs[0].Parallelism == parallelism && len(jobs[0].Lost) == lost
		}, waitLimit, askEvery, "the job must run with %d subtasks: %+v\n%s", parallelism, m.jobs(), &c.err)
		return id
	}
	runsWith(2, 0)
	m.tasks = append(m.tasks, nil)
	m.startTask(1)
	id := runsWith(4, 1)
	got := m.client("scale", id, "2")
	require.Zero(t, got.Code, got.Stderr)
	runsWith(2, 2)
	got = m.client("scale", id, "4")
	require.Zero(t, got.Code, got.Stderr)
	runsWith(4, 3)
	got = m.client("scale", id, "1:4")
	require.Zero(t, got.Code, got.Stderr)
	got = m.client("drain", "tm1")
	require.Zero(t, got.Code, got.Stderr)
	says(t, got.Stdout, id+" leaves: it is saved and then goes on elsewhere")
	runsWith(2, 4)

	require.NoError(t, os.Remove(slow))
	require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)
	require.Equal(t, undisturbed.Stdout, c.out.String())
	job := m.jobs()[0]
	require.Equal(t, "finished", job.State)
	require.Zero(t, job.Restarts, "a change that is announced does not count as a restart")
	shown := m.client("show", id).Stdout
	require.Equal(t, 4, strings.Count(shown, "(from memory)"), "all attempts after the first continue from memory:\n%s", shown)
	rows, err := os.ReadFile(made)
	require.NoError(t, err)
	times := make(map[string]int)
	for line := range strings.Lines(string(rows)) {
		times[line]++
	}
	require.Len(t, times, 2000)
	logs := m.client("logs", id).Stdout
	for line, n := range times {
		require.Equal(t, 1, n, "row %s must be made once:\n%s", strings.TrimSpace(line), logs)
	}
}

// TestElasticRefuses requires clear errors for ranges that cannot be, and a job that waits for a least
// that the cluster does not have.
func TestElasticRefuses(t *testing.T) {
	t.Parallel()
	m := startProcesses(t, 1, 2)
	path := programs.Build(t, "./tests/clusterjobs")
	for text, want := range map[string]string{
		"5:2": "want the smaller number first, as in 2:5", "0:4": "begins below 1", "2:": "is neither a number of subtasks such as 4 nor a range such as 2:8",
		"100:200": "--parallelism is 200, but there are only 128 shards",
	} {
		got := programs.Execute(t, m.environ, path, "--cluster", m.address, "--parallelism", text)
		require.Equal(t, 2, got.Code, got.Stderr)
		says(t, got.Stderr, want)
	}
	got := programs.Execute(t, m.environ, path, "--cluster", m.address, "--parallelism", "3:8", "--wait-timeout", "300ms")
	require.Equal(t, 1, got.Code, got.Stderr)
	says(t, got.Stderr, "waiting for 3 to 8 slots: the cluster has 2 slots in all (1 task manager of")
	here := programs.Execute(t, nil, path, "--parallelism", "2:100", "--progress", "off")
	require.Zero(t, here.Code, here.Stderr)
}
