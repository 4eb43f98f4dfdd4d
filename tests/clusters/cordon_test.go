//go:build linux && !race

package clusters

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestCordon cordons a task manager, and then kills it and the job manager and starts both again.
// Jobs must get workers on the other task manager only, and say why they wait for more, until the
// task manager is uncordoned.
func TestCordon(t *testing.T) {
	t.Parallel()
	m := startProcesses(t, 2, 1)
	run := func(args ...string) programs.Outcome {
		return programs.Execute(t, m.environ, programs.Build(t, "./tests/clusterjobs"), append(args, "--cluster", m.address)...)
	}
	got := m.client("cordon", "tm1", "--reason", "its fan is replaced")
	require.Zero(t, got.Code, got.Stderr)
	says(t, got.Stdout, "tm1 is cordoned since ", ": its fan is replaced", "no workers run there", "the cluster has 1 slot for new workers")

	require.NoError(t, m.manager.Process.Kill())
	_ = m.manager.Wait()
	require.NoError(t, m.tasks[1].Process.Kill())
	_ = m.tasks[1].Wait()
	m.startManager(m.address)
	says(t, m.client("nodes").Stdout, "tm1 is cordoned since ", ": its fan is replaced")
	m.startTask(1)
	require.Eventually(t, func() bool { return strings.Contains(m.client("nodes").Stdout, "\n1 of 2 slots are free\n") }, waitLimit, askEvery, "%s", m.output)

	got = run("--parallelism", "1")
	require.Zero(t, got.Code, got.Stderr)
	got = run("--parallelism", "2", "--wait-timeout", "300ms")
	require.Equal(t, 1, got.Code, got.Stderr)
	says(t, got.Stderr, "the cluster has 1 slot besides the cordoned ones", "; 1 slot on task manager tm1 is cordoned")
	got = m.client("cordon", "tm0")
	says(t, got.Stdout, "no slots are left for new workers")
	got = m.client("uncordon", "tm_1")
	require.Equal(t, 1, got.Code, got.Stdout)
	says(t, got.Stderr, `there is no task manager "tm_1"; did you mean "tm1"?`)

	for _, name := range []string{"tm0", "tm1"} {
		got = m.client("uncordon", name)
		require.Zero(t, got.Code, got.Stderr)
		says(t, got.Stdout, name+" is not cordoned any more")
	}
	got = run("--parallelism", "2")
	require.Zero(t, got.Code, got.Stderr)
	m.requireFree()
}
