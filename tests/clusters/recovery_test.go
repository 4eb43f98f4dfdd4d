//go:build linux && !race

package clusters

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestTimeToTheNextAttempt kills or stops a worker, or kills a task manager, of running jobs, and measures the
// time until the first superstep of the next attempt ends on subtask 0. With the default settings
// of a cluster, this time must be shorter than the lease of the lost task manager, because the
// next attempt does not wait until the lease has lapsed.
func TestTimeToTheNextAttempt(t *testing.T) {
	t.Parallel()
	const lease = 16 * time.Second // default of --lease
	workers := func(signal syscall.Signal) func(m *processCluster, task int) {
		return func(m *processCluster, task int) {
			for _, pid := range workersOf(m.t, m.tasks[task].Process.Pid) {
				require.NoError(m.t, syscall.Kill(pid, signal))
			}
		}
	}
	for _, victim := range []struct {
		name string
		lose func(m *processCluster, task int)
	}{
		{"worker", workers(syscall.SIGKILL)},
		{"stopped worker", workers(syscall.SIGSTOP)},
		{"task manager", func(m *processCluster, task int) { require.NoError(m.t, m.tasks[task].Process.Kill()) }},
	} {
		t.Run(victim.name, func(t *testing.T) {
			m := startProcesses(t, 3, 2)
			var took []time.Duration
			for range testsize.Of(1, 7) {
				took = append(took, m.timeToTheNextAttempt(victim.lose))
			}
			slices.Sort(took)
			t.Logf("loss of a %s: median %v, slowest %v of %d", victim.name, took[len(took)/2], took[len(took)-1], len(took))
			require.Less(t, took[0], lease)
		})
	}
}

// timeToTheNextAttempt runs a job on two of the three task managers, loses a part of the one with
// worker 1, and returns the time from then to the end of the first superstep of the next attempt.
func (m *processCluster) timeToTheNextAttempt(lose func(m *processCluster, task int)) time.Duration {
	t := m.t
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	c := m.start("--parallelism", "4", "--steps", "1000000", "--pause", "1ms", "--trace", trace, "--output", filepath.Join(dir, "rows.csv"))
	var before traced
	require.Eventually(t, func() bool {
		all := tracedBy(t, trace)
		if len(all) == 0 {
			return false
		}
		before = all[len(all)-1]
		return true
	}, waitLimit, 5*time.Millisecond, "the job does not run: %s", &c.err)
	task := -1
	for i, p := range m.tasks {
		if pids := workersOf(t, p.Process.Pid); len(pids) == 1 && pids[0] != before.pid {
			task = i
		}
	}
	require.NotEqual(t, -1, task)
	lost := time.Now()
	lose(m, task)
	require.Eventually(t, func() bool {
		return strings.Count(c.err.String(), `"state":"running"`) == 2
	}, waitLimit, 5*time.Millisecond, "there is no next attempt: %s", &c.err)
	var after traced
	require.Eventually(t, func() bool {
		all := tracedBy(t, trace)
		for i := 1; i < len(all); i++ {
			// The worker with subtask 0 keeps its process, and no attempt begins sooner.
			if all[i].at > lost.UnixNano() && all[i].at-all[i-1].at >= int64(wire.DefaultFirstDelay)/2 {
				after = all[i]
				return true
			}
		}
		return false
	}, waitLimit, 5*time.Millisecond, "the next attempt has done no superstep: %s", &c.err)
	require.NoError(t, c.cmd.Process.Kill())
	<-c.ended
	if m.tasks[task].Process.Signal(syscall.Signal(0)) != nil || gone(m.tasks[task].Process.Pid) {
		_ = m.tasks[task].Wait()
		m.startTask(task)
	}
	m.requireFree()
	return time.Unix(0, after.at).Sub(lost).Round(time.Millisecond)
}

// traced is a line of the trace of a job.
type traced struct {
	pid int
	at  int64 // in nanoseconds
}

// tracedBy reads the complete lines of a trace.
func tracedBy(t testing.TB, path string) (all []traced) {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if !strings.HasSuffix(line, "\n") || len(fields) != 3 {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		require.NoError(t, err)
		at, err := strconv.ParseInt(fields[2], 10, 64)
		require.NoError(t, err)
		all = append(all, traced{pid, at})
	}
	return all
}
