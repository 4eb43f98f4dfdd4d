//go:build linux && !race

package clusters

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestSavepointAndDrain makes a savepoint of a running job, drains one of its two task managers, so
// that the job goes on with the other from its last superstep, and cancels it. Another run in one
// process continues from the savepoint, at another parallelism. Both must have the results of an
// undisturbed run.
func TestSavepointAndDrain(t *testing.T) {
	t.Parallel()
	m := startShortTimeouts(t)
	dir := t.TempDir()
	path := programs.Build(t, "./tests/clusterjobs")
	undisturbed := programs.Execute(t, nil, path, "--steps", "500", "--progress", "off")
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)

	checkpoints, savepoint := filepath.Join(dir, "checkpoints"), filepath.Join(dir, "savepoint")
	c := m.start("--steps", "500", "--pause", "3ms", "--parallelism", "2", "--checkpoint-dir", checkpoints, "--checkpoint-every", "1h")
	m.reaches(c, 1) // before, a savepoint has no queue
	var jobs []struct {
		ID       string
		State    string
		Restarts int
		Workers  []struct {
			TaskManager string `json:"task_manager"`
			Lo, Hi      int
		}
		Lost []struct{ Cause, From string }
	}
	list := func() {
		got := m.client("list", "-o", "json")
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &jobs), got.Stderr)
	}
	list()
	id := jobs[0].ID
	got := m.client("savepoint", id, savepoint)
	require.Zero(t, got.Code, got.Stderr)
	says(t, got.Stdout, id+" is saved in "+savepoint, `queue "sums": superstep `)
	got = m.client("savepoint", id, savepoint)
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, "give each savepoint a place of its own")

	leaving := jobs[0].Workers[0].TaskManager
	got = m.client("drain", leaving, "--reason", "its fan is replaced")
	require.Zero(t, got.Code, got.Stderr)
	says(t, got.Stdout, leaving+" is cordoned", id+" leaves: it is saved and then goes on elsewhere")
	require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)
	require.Equal(t, undisturbed.Stdout, c.out.String())
	list()
	require.Equal(t, "finished", jobs[0].State)
	require.Zero(t, jobs[0].Restarts, "a drain does not count as a restart")
	require.Len(t, jobs[0].Lost, 1)
	require.Equal(t, "task manager "+leaving+" is drained", jobs[0].Lost[0].Cause)
	for _, w := range jobs[0].Workers {
		if w.Hi > w.Lo { // else it only gave what it had kept
			require.NotEqual(t, leaving, w.TaskManager)
		}
	}
	says(t, c.err.String(), `"state":"running","detail":"from checkpoint`)
	left, err := os.ReadDir(checkpoints)
	require.NoError(t, err)
	require.Empty(t, left)
	got = m.client("savepoint", id, filepath.Join(dir, "late"))
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, "the job is finished: only a running job has a state")
	got = m.client("drain", "tm9")
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, `there is no task manager "tm9"`)
	require.Zero(t, m.client("uncordon", leaving).Code)

	continued := programs.Execute(t, nil, path, "--steps", "500", "--parallelism", "3", "--progress", "plain", "--from", savepoint)
	require.Zero(t, continued.Code, continued.Stderr)
	require.Equal(t, undisturbed.Stdout, continued.Stdout)
	says(t, continued.Stderr, "savepoint ", `queue "sums" continues after superstep`)
	longer := programs.Execute(t, nil, path, "--steps", "510", "--progress", "plain", "--from", savepoint)
	require.Zero(t, longer.Code, longer.Stderr)
	says(t, longer.Stderr, "unlike the run that wrote the savepoint: its run had other arguments: Pause, Steps")
}

// TestSavepointBeforeTheFirstSuperstep makes a savepoint of a job that is in its first superstep. A run
// from there must have the result of an undisturbed run.
func TestSavepointBeforeTheFirstSuperstep(t *testing.T) {
	t.Parallel()
	m := startShortTimeouts(t)
	dir := t.TempDir()
	path := programs.Build(t, "./tests/clusterjobs")
	undisturbed := programs.Execute(t, nil, path, "--steps", "20", "--progress", "off")
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)

	savepoint := filepath.Join(dir, "savepoint")
	c := m.start("--steps", "20", "--pause", "1h", "--parallelism", "2", "--checkpoint-dir", filepath.Join(dir, "checkpoints"), "--checkpoint-every", "1h")
	m.runs(c, 1)
	id := m.jobs()[0].ID
	got := m.client("savepoint", id, savepoint)
	require.Zero(t, got.Code, got.Stderr)
	says(t, got.Stdout, id+" is saved in "+savepoint, "no queue has done a superstep: a run from here begins at superstep 1")
	require.Zero(t, m.client("cancel", id).Code)
	require.NotZero(t, c.wait(t, waitLimit))

	continued := programs.Execute(t, nil, path, "--steps", "20", "--parallelism", "3", "--progress", "off", "--from", savepoint)
	require.Zero(t, continued.Code, continued.Stderr)
	require.Equal(t, undisturbed.Stdout, continued.Stdout)
}
