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

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestRowsInFilesOutliveWorkers kills workers of a running job whose rows do not fit into its memory, one after
// the other. No row may be made twice, as those of the survivor and of the worker that was killed are in files.
// Then a task manager is killed and started again, whose files are gone. The results must be those of an
// undisturbed run, and nothing may be left in the directories of the task managers: after the job, after a job
// that is cancelled, and after a worker that was killed before.
func TestRowsInFilesOutliveWorkers(t *testing.T) {
	t.Parallel()
	const rows = 20_000
	m := startShortTimeouts(t)
	dir := t.TempDir()
	made := filepath.Join(dir, "made")
	args := []string{"--rows", "20000", "--steps", "600", "--memory", "2KiB", "--made", made, "--log-level", "info"}
	undisturbed := programs.Execute(t, nil, programs.Build(t, "./tests/clusterjobs"), append(args, "--progress", "off")...)
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)
	require.NoError(t, os.Remove(made))
	count := func() int {
		data, err := os.ReadFile(made)
		require.NoError(t, err)
		return strings.Count(string(data), "\n")
	}

	trace := filepath.Join(dir, "trace")
	c := m.start(append(args, "--pause", "3ms", "--restart-delay", "50ms", "--trace", trace)...)
	workers := m.runs(c, 1)
	for attempt, victim := range []int{1, 0, 1} {
		awaitSuperstep(t, trace, c, 20+40*attempt)
		require.NoError(t, syscall.Kill(workers[victim], syscall.SIGKILL))
		workers = m.runs(c, attempt+2)
	}
	awaitSuperstep(t, trace, c, 160)
	require.Equal(t, rows, count(), "all rows were there")
	require.NoError(t, m.tasks[1].Process.Kill())
	_ = m.tasks[1].Wait()
	m.startTask(1)
	m.runs(c, 5)
	require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)
	require.Equal(t, undisturbed.Stdout, c.out.String())
	require.Equal(t, 2*rows, count(), "the rows of the task manager were lost, which needs those of all")
	m.requireFree()
	m.requireNoRows()

	trace = filepath.Join(dir, "cancelled")
	c = m.start(append(args, "--pause", "3ms", "--restart-delay", "50ms", "--trace", trace)...)
	workers = m.runs(c, 1)
	awaitSuperstep(t, trace, c, 20)
	require.NotEmpty(t, m.rowsIn(), "rows are in files")
	require.NoError(t, syscall.Kill(workers[0], syscall.SIGKILL))
	m.runs(c, 2)
	require.NoError(t, c.cmd.Process.Signal(os.Interrupt))
	require.NotZero(t, c.wait(t, waitLimit))
	m.requireFree()
	m.requireNoRows()
}

// rowsIn returns what is in the directories for rows of the task managers.
func (m *processCluster) rowsIn() []string {
	m.t.Helper()
	left, err := filepath.Glob(filepath.Join(m.dir, "*", "rows", "*"))
	require.NoError(m.t, err)
	return left
}

// requireNoRows requires that nothing is left in the directories for rows, and that these exist.
func (m *processCluster) requireNoRows() {
	m.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(m.dir, "*", "rows"))
	require.NoError(m.t, err)
	require.Len(m.t, dirs, len(m.tasks))
	require.Eventually(m.t, func() bool { return len(m.rowsIn()) == 0 }, waitLimit, 10*time.Millisecond, "%v are left", m.rowsIn())
}
