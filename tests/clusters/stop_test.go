//go:build linux && !race

package clusters

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestJobManagerStopped stops (SIGSTOP) the job manager for a while and lets it continue. If
// that time is shorter than the timeouts of the other processes, the job must finish with its
// usual result. If it is longer, the workers have ended before the job manager continues. In
// this case the client's error must say that the job manager did not run. It must not name a
// task manager, or the consequences for the workers.
func TestJobManagerStopped(t *testing.T) {
	t.Parallel()
	path := programs.Build(t, "./tests/clusterjobs")
	here := programs.Execute(t, nil, path, "--progress", "off")
	require.Zero(t, here.Code, here.Stderr)
	m := startProcesses(t, 2, 1)

	c := m.submit("--steps", "20", "--pause", "30ms", "--progress", "plain")
	m.awaitWorkers(c)
	m.stopManager(2 * time.Second)
	require.Zero(t, c.wait(t, waitLimit), c.err.String())
	require.Equal(t, here.Stdout, c.out.String())
	m.requireFree()

	if !testsize.Soak {
		return // the rest of the test takes as long as a lease, 16 s
	}
	c = m.submit("--steps", "20", "--pause", "30ms", "--progress", "plain")
	m.awaitWorkers(c)
	m.stopManager(10 * time.Second)
	require.Zero(t, c.wait(t, waitLimit), c.err.String())
	require.Equal(t, here.Stdout, c.out.String())
	m.requireFree()
	for range 3 {
		c = m.submit()
		workers := m.awaitWorkers(c)
		c.awaitOutput(t, `"step":`) // now the client follows the job
		m.stopManager(20 * time.Second)
		for _, pid := range workers {
			require.Eventually(t, func() bool { return gone(pid) }, waitLimit, 5*time.Millisecond, "worker %d must end", pid)
		}
		require.NotZero(t, c.wait(t, waitLimit))
		_, cause, found := strings.Cut(c.err.String(), "clusterjobs: error: ") // the text before it may say that the cause is not known yet
		require.True(t, found, c.err.String())
		require.Contains(t, cause, "the job manager did not run for 2")
		require.NotContains(t, cause, "on task manager")
		m.requireFree()
	}
}

// stopManager stops the job manager for a while.
func (m *processCluster) stopManager(d time.Duration) {
	m.t.Helper()
	require.NoError(m.t, m.manager.Process.Signal(syscall.SIGSTOP))
	passed := time.NewTimer(d)
	defer passed.Stop()
	<-passed.C
	require.NoError(m.t, m.manager.Process.Signal(syscall.SIGCONT))
}

// awaitOutput waits until the client has printed a text.
func (c *clientRun) awaitOutput(t testing.TB, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(c.err.String(), text) }, waitLimit, 5*time.Millisecond, "the client must print %s", text)
}

// awaitWorkers waits until all workers of a job run, and returns their PIDs.
func (m *processCluster) awaitWorkers(c *clientRun) []int {
	m.t.Helper()
	var workers []int
	require.Eventually(m.t, func() bool {
		workers = m.allWorkers()
		return len(workers) == len(m.tasks)
	}, waitLimit, 5*time.Millisecond, "the job's workers do not start: %s", c.err.String())
	return workers
}
