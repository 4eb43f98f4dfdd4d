//go:build linux && !race

package clusters

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestLostWorkerContinuesFromFiles kills the only worker of a job with state per shard, again and again,
// where no other task manager is part of the job. The next worker must continue from a file after a
// superstep that was done shortly before. If the newest file is damaged in between, it must continue from
// the one before, and if both are, at superstep 1. The results must be those of an undisturbed run, byte
// for byte, and nothing may be left.
func TestLostWorkerContinuesFromFiles(t *testing.T) {
	t.Parallel()
	path := programs.Build(t, "./tests/killjobs")
	args := func(dir string) []string {
		require.NoError(t, os.Mkdir(dir, 0o700))
		return []string{"--job", "queue", "--rows", "5000", "--steps", "150", "--output", filepath.Join(dir, "rows.csv"), "--client", filepath.Join(dir, "first.csv"), "--progress", "off"}
	}
	dir := t.TempDir()
	undisturbed := programs.Execute(t, nil, path, args(filepath.Join(dir, "want"))...)
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)
	want := filesBelow(t, filepath.Join(dir, "want"))

	for _, test := range []struct {
		name         string
		taskManagers int
		parallelism  string
		copies       string
		damaged      []int // for each loss, how many files are damaged
		continued    int   // how many attempts continue from files
	}{
		{"one task manager", 1, "2", "1", []int{0, 1, 2}, 2},
		{"another task manager without a worker", 2, "1", "2", []int{0}, 1},
		{"no copies", 1, "2", "0", []int{0}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := startProcesses(t, test.taskManagers, 2)
			got := filepath.Join(dir, test.name)
			c := m.startProgram(path, append(args(got), "--pause", "30ms", "--parallelism", test.parallelism, "--copies", test.copies, "--restart", "fixed-delay", "--restart-delay", "1500ms")...)
			var done []int
			for i, n := range test.damaged {
				done = append(done, m.reachesIn(c, i+1, 30*(i+1)))
				pids := m.allWorkers()
				require.Len(t, pids, 1)
				require.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
				require.Eventually(t, func() bool { return gone(pids[0]) }, waitLimit, time.Millisecond)
				damage(t, m, n)
			}
			require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)
			require.Equal(t, undisturbed.Stdout, c.out.String())
			require.Equal(t, want, filesBelow(t, got))

			shown := m.client("show", m.jobs()[0].ID).Stdout
			from := regexp.MustCompile(`queue "states" continues after superstep (\d+) \(from a file\)`).FindAllStringSubmatch(shown, -1)
			require.Len(t, from, test.continued, shown)
			for _, parts := range from {
				step, err := strconv.Atoi(parts[1])
				require.NoError(t, err)
				require.True(t, slices.ContainsFunc(done, func(d int) bool { return step >= d-8 && step <= d+8 }), // copies take longer while others use the processors
					"an attempt continues after superstep %d; workers were killed after %v", step, done)
			}
			m.requireFree()
			require.Eventually(t, func() bool { return len(stateFiles(t, m)) == 0 }, waitLimit, askEvery, "files are left: %v", stateFiles(t, m))
		})
	}
}

// reachesIn waits until an attempt of the job that was submitted last has done a superstep, and returns the
// last superstep that it has done.
func (m *processCluster) reachesIn(c *clientRun, attempt, superstep int) (reached int) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		all := m.jobs()
		if len(all) == 0 {
			return false
		}
		var job struct {
			Attempt  int
			Progress struct {
				Queues []struct{ Superstep int }
			}
		}
		require.NoError(m.t, json.Unmarshal([]byte(m.client("show", all[0].ID, "-o", "json").Stdout), &job))
		for _, q := range job.Progress.Queues {
			if reached = q.Superstep; job.Attempt == attempt && reached >= superstep {
				return true
			}
		}
		return false
	}, waitLimit, askEvery, "attempt %d does not reach superstep %d: %s", attempt, superstep, &c.err)
	return reached
}

// stateFiles returns the files with states of queues, and their directories, of all task managers.
func stateFiles(t testing.TB, m *processCluster) (all []string) {
	for _, pattern := range []string{"tm*/states/*", "tm*/states/*/*"} {
		found, err := filepath.Glob(filepath.Join(m.dir, pattern))
		require.NoError(t, err)
		all = append(all, found...)
	}
	return all
}

// damage changes a byte in the middle of each of the n newest files with states of queues.
func damage(t testing.TB, m *processCluster, n int) {
	files := slices.DeleteFunc(stateFiles(t, m), func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || info.IsDir() || filepath.Ext(path) != ""
	})
	slices.Sort(files)
	require.GreaterOrEqual(t, len(files), n)
	for _, path := range files[len(files)-n:] {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		data[len(data)/2] ^= 1
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
}
