//go:build linux && !race

package clusters

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestRestarts kills a worker of a running job, and then a task manager, which is started again.
// The job must be restarted each time, and must have the results of an undisturbed run, byte for
// byte. No other files and no processes may be left. In a soak test, the processes are also
// stopped instead of killed.
func TestRestarts(t *testing.T) {
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGKILL}
	if testsize.Soak {
		signals = append(signals, syscall.SIGSTOP)
	}
	for _, signal := range signals {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			restarts(t, signal)
		})
	}
}

// restarts runs the test with one signal.
func restarts(t *testing.T, signal syscall.Signal) {
	m := startShortTimeouts(t)
	dir := t.TempDir()
	path := programs.Build(t, "./tests/clusterjobs")
	args := func(name string) []string {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		return []string{"--steps", "1000", "--output", filepath.Join(dir, name, "rows.csv")}
	}
	undisturbed := programs.Execute(t, nil, path, append(args("want"), "--progress", "off")...)
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)

	c := m.start(append(args("got"), "--pause", "3ms")...)
	first := m.runs(c, 1)
	require.NoError(t, syscall.Kill(first[1], signal))
	second := m.runs(c, 2)
	require.NoError(t, m.tasks[0].Process.Signal(signal))
	if signal == syscall.SIGKILL {
		_ = m.tasks[0].Wait()
		m.startTask(0)
	} else {
		require.Eventually(t, func() bool { return strings.Contains(c.err.String(), "attempt 2 was lost") }, waitLimit, time.Millisecond, "%s", &c.err)
		require.NoError(t, m.tasks[0].Process.Signal(syscall.SIGCONT))
	}
	third := m.runs(c, 3)
	require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)

	require.Equal(t, undisturbed.Stdout, c.out.String())
	require.Equal(t, filesBelow(t, filepath.Join(dir, "want")), filesBelow(t, filepath.Join(dir, "got")))
	lost := map[syscall.Signal]string{syscall.SIGKILL: "killed by signal: killed", syscall.SIGSTOP: "the worker was silent for"}[signal]
	says(t, c.err.String(), "attempt 1 was lost: "+lost, "worker 1 on task manager tm1",
		"attempt 2 was lost: task manager tm0 ")
	m.requireFree()
	for _, pid := range append(append(first, second...), third...) {
		require.Eventually(t, func() bool { return gone(pid) }, waitLimit, 20*time.Millisecond, "worker %d must end", pid)
	}
	require.Equal(t, filesBelow(t, filepath.Join(dir, "want")), filesBelow(t, filepath.Join(dir, "got")))

	list := m.client("list", "-o", "json")
	var jobs []struct {
		ID, State string
		Restarts  int
		Lost      []struct{ Number int }
	}
	require.NoError(t, json.Unmarshal([]byte(list.Stdout), &jobs), list.Stderr)
	require.Len(t, jobs, 1)
	require.Equal(t, "finished", jobs[0].State)
	require.Equal(t, 2, jobs[0].Restarts)
	require.Len(t, jobs[0].Lost, 2)
	says(t, m.client("show", jobs[0].ID).Stdout, "WHY IT ENDED", lost, "task manager tm0")
}

// runs waits until the given attempt of a job runs, and returns the PIDs of its workers by task
// manager.
func (m *processCluster) runs(c *clientRun, attempt int) (workers []int) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		parts := strings.Split(c.err.String(), `"state":"running"`)
		return len(parts) == attempt+1
	}, waitLimit, time.Millisecond, "attempt %d does not run: %s", attempt, &c.err)
	for _, p := range m.tasks {
		workers = append(workers, workersOf(m.t, p.Process.Pid)...)
	}
	require.Len(m.t, workers, len(m.tasks))
	return workers
}

// TestCrashesInTheSameWay runs a job whose program crashes in every attempt. The job must fail
// with the cause and the number of attempts, although its strategy allows more.
func TestCrashesInTheSameWay(t *testing.T) {
	t.Parallel()
	m := startProcesses(t, 2, 2)
	got := programs.Execute(t, m.environ, programs.Build(t, "./tests/clusterjobs"), "--cluster", m.address, "--parallelism", "4",
		"--fault", "gopanic", "--restart-delay", "10ms")
	require.Equal(t, 1, got.Code, got.Stderr)
	says(t, got.Stderr, "panic: the panic of a goroutine", "workers crashed in this way in 3 attempts", "the last of 3 attempts")
	got = programs.Execute(t, m.environ, programs.Build(t, "./tests/clusterjobs"), "--cluster", m.address, "--parallelism", "4",
		"--fault", "kill", "--restart", "fixed-delay", "--restart-attempts", "1", "--restart-delay", "10ms")
	require.Equal(t, 1, got.Code, got.Stderr)
	says(t, got.Stderr, "killed by signal", "--restart fixed-delay allows 1 restart", "the last of 2 attempts")
	m.requireFree()
	require.Eventually(t, func() bool { return len(m.allWorkers()) == 0 }, waitLimit, time.Millisecond, "processes that were kept end soon after the job")
}

// TestRestartsContinue kills the worker of a running job that has no subtask 0, then the one that
// has it, and then a task manager. Each attempt must continue from a checkpoint of the one before,
// and the job must have the results of an undisturbed run, byte for byte. No checkpoints may be left.
func TestRestartsContinue(t *testing.T) {
	t.Parallel()
	m := startShortTimeouts(t)
	dir := t.TempDir()
	path := programs.Build(t, "./tests/clusterjobs")
	args := func(name string) []string {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		return []string{"--steps", "600", "--output", filepath.Join(dir, name, "rows.csv")}
	}
	undisturbed := programs.Execute(t, nil, path, append(args("want"), "--progress", "off")...)
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)

	checkpoints := filepath.Join(dir, "checkpoints")
	c := m.start(append(args("got"), "--pause", "3ms", "--checkpoint-dir", checkpoints, "--checkpoint-every", "10steps", "--copies", "0", "--restart-delay", "50ms")...)
	written := ""
	next := func(attempt int) []int {
		workers := m.runs(c, attempt)
		require.Eventually(t, func() bool {
			found, err := filepath.Glob(filepath.Join(checkpoints, "checkpoint-*"))
			require.NoError(t, err)
			if len(found) == 0 || found[len(found)-1] == written {
				return false
			}
			written = found[len(found)-1]
			return true
		}, waitLimit, time.Millisecond, "attempt %d has written no checkpoint: %s", attempt, &c.err)
		return workers
	}
	require.NoError(t, syscall.Kill(next(1)[1], syscall.SIGKILL))
	require.NoError(t, syscall.Kill(next(2)[0], syscall.SIGKILL))
	next(3)
	require.NoError(t, m.tasks[1].Process.Kill())
	_ = m.tasks[1].Wait()
	m.startTask(1)
	m.runs(c, 4)
	require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)

	require.Equal(t, undisturbed.Stdout, c.out.String())
	require.Equal(t, filesBelow(t, filepath.Join(dir, "want")), filesBelow(t, filepath.Join(dir, "got")))
	m.requireFree()
	require.Empty(t, filesBelow(t, checkpoints))
	list := m.client("list", "-o", "json")
	var jobs []struct {
		ID   string
		Lost []struct{ From string }
	}
	require.NoError(t, json.Unmarshal([]byte(list.Stdout), &jobs), list.Stderr)
	require.Equal(t, "superstep 1", jobs[0].Lost[0].From)
	for _, lost := range jobs[0].Lost[1:] {
		require.Regexp(t, `^checkpoint \d+ of .*: queue "sums" continues after superstep \d+0$`, lost.From)
	}
	require.Len(t, jobs[0].Lost, 3)
	says(t, m.client("show", jobs[0].ID).Stdout, "CONTINUED FROM", "superstep 1", `queue "sums" continues after superstep`)
	says(t, c.err.String(), `"state":"running","detail":"from checkpoint`)

	var told struct {
		Dir     string
		Written int
		Newest  []struct {
			Number int
			Queues []struct{ Superstep int }
		}
	}
	said := m.client("checkpoints", jobs[0].ID, "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(said.Stdout), &told), said.Stderr)
	require.Equal(t, checkpoints, told.Dir)
	require.Positive(t, told.Written)
	for i, w := range told.Newest {
		require.True(t, i == 0 || w.Number > told.Newest[i-1].Number && w.Queues[0].Superstep >= told.Newest[i-1].Queues[0].Superstep, "%+v", told)
	}
	says(t, m.client("checkpoints", jobs[0].ID).Stdout, "has written", "to "+checkpoints, "SUPERSTEP", "sums")
}
