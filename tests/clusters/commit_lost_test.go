//go:build linux && !race

package clusters

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// A committer describes which part of a cluster is lost while a job makes its results visible.
// The job manager always keeps running.
type committer struct {
	name    string
	files   bool // whether the output is one file instead of directories
	replace bool // whether the outputs exist already and are replaced
	after   int  // number of directories that have their final name when the part is lost
	signal  syscall.Signal
	worker  bool // whether the signal is sent to the worker
	task    bool // whether the signal is sent to the task manager
}

// TestWorkerLostWhileCommitting kills worker 0, in some rounds together with its task manager,
// when only some outputs are visible or while the only output is assembled. Another worker must
// finish the commit. The client, which stays connected, must report this and succeed. All
// outputs must be complete and visible once, and the directory must contain no other files.
func TestWorkerLostWhileCommitting(t *testing.T) {
	t.Parallel()
	groups := [][]committer{
		{{name: "one file, worker and task manager", files: true, signal: syscall.SIGKILL, worker: true, task: true}},
		{
			{name: "directories, worker", after: 1, signal: syscall.SIGKILL, worker: true},
			{name: "directories replaced, worker and task manager", replace: true, after: 3, signal: syscall.SIGKILL, worker: true, task: true},
		},
	}
	if testsize.Soak {
		for after := range directories {
			groups = append(groups, []committer{
				{name: fmt.Sprintf("worker after %d directories", after), replace: after%2 == 0, after: after, signal: syscall.SIGKILL, worker: true},
				{name: fmt.Sprintf("task manager after %d directories", after), replace: after%2 == 1, after: after, signal: syscall.SIGKILL, task: true},
				{name: fmt.Sprintf("worker stopped after %d directories", after), after: after, signal: syscall.SIGSTOP, worker: true},
				{name: fmt.Sprintf("task manager stopped after %d directories", after), after: after, signal: syscall.SIGSTOP, task: true},
			})
		}
	}
	dir := t.TempDir()
	want := map[bool]map[string]string{}
	for _, files := range []bool{false, true} {
		c := committer{files: files}
		path := filepath.Join(dir, fmt.Sprint("want-", files))
		require.NoError(t, os.Mkdir(path, 0o700))
		got := programs.Execute(t, nil, programs.Build(t, "./tests/commitjobs"), append(c.args(path), "--progress", "off")...)
		require.Zero(t, got.Code, got.Stderr)
		want[files] = filesBelow(t, path)
	}
	for i, rounds := range groups {
		t.Run(rounds[0].name, func(t *testing.T) {
			t.Parallel()
			m := startShortTimeouts(t)
			for k, c := range rounds {
				lost := false
				for try := 0; !lost && try < 5; try++ {
					lost = m.loseCommitter(filepath.Join(dir, fmt.Sprintf("%d-%d-%d", i, k, try)), c, want[c.files])
					require.True(t, lost || c.files, "%s: the client must report the loss of worker 0", c.name)
				}
				require.True(t, lost, "%s: in one of five attempts worker 0 must be lost before its commit has ended", c.name)
			}
		})
	}
}

// directories is the number of output directories of a job of TestWorkerLostWhileCommitting.
const directories = 4

func (c *committer) args(dir string) []string {
	out := filepath.Join(dir, "out")
	if c.files {
		return []string{"--rows", "600000", "--shards", "16", "--output", out}
	}
	args := []string{"--rows", "4000", "--shards", "8", "--per-shard", "--outputs", strconv.Itoa(directories), "--output", out,
		"--hold-at", strconv.Itoa(c.after)}
	if c.replace {
		args = append(args, "--if-exists", "replace")
	}
	return args
}

// startShortTimeouts starts a cluster of two task managers whose timeouts are short.
func startShortTimeouts(t testing.TB) *processCluster {
	t.Helper()
	return startProcesses(t, 2, 2, "--detection", "2s", "--lease", "3s")
}

// loseCommitter runs one round in dir, and compares the output with want. It reports whether
// worker 0 was lost before its commit ended.
func (m *processCluster) loseCommitter(dir string, k committer, want map[string]string) bool {
	t := m.t
	require.NoError(t, os.Mkdir(dir, 0o700))
	for i := range directories {
		if out := filepath.Join(dir, fmt.Sprint("out-", i)); k.replace {
			require.NoError(t, os.Mkdir(out, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(out, "part-00000.csv"), []byte("old\n"), 0o600))
		}
	}
	// The commit of a file has begun when the file into which the parts are assembled exists.
	// The commit of several directories does not end before the test removes a file, which the
	// job creates.
	seen := filepath.Join(dir, ".superstep-out", "whole")
	args := k.args(dir)
	if !k.files {
		seen = dir + ".hold"
		args = append(args, "--hold", seen)
	}
	checkpoints := dir + ".checkpoints"
	args = append(args, "--cluster", m.address, "--parallelism", "4", "--progress", "json", "--checkpoint-dir", checkpoints)
	c := &clientRun{cmd: proctest.Command(programs.Build(t, "./tests/commitjobs"), args...), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), m.environ...)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.err
	require.NoError(t, c.cmd.Start())
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	var worker int
	first := m.tasks[0].Process.Pid // worker 0 runs on the first task manager
	require.Eventually(t, func() bool {
		if _, err := os.Lstat(seen); err != nil {
			return false
		}
		workers := workersOf(t, first)
		if len(workers) == 1 {
			worker = workers[0]
		}
		return len(workers) == 1 || k.files // the other workers may have ended
	}, waitLimit, time.Millisecond, "%s: the job does not come to its commit: %s", k.name, c.err.String())
	if k.worker && worker != 0 {
		_ = syscall.Kill(worker, k.signal)
	}
	if k.task {
		require.NoError(t, syscall.Kill(first, k.signal))
	}
	if !k.files {
		require.Len(t, placed(t, dir), k.after, "%s: so many directories must have their final name", k.name)
		require.NoError(t, os.Remove(seen))
	}
	require.Zero(t, c.wait(t, waitLimit), "%s: the client must succeed: %s", k.name, c.err.String())
	require.Equal(t, want, filesBelow(t, dir), "%s: the directory must contain the outputs, and no other files", k.name)
	if k.task {
		if k.signal == syscall.SIGSTOP {
			require.NoError(t, syscall.Kill(first, syscall.SIGCONT))
		} else {
			_ = m.tasks[0].Wait()
			m.startTask(0)
		}
	}
	m.requireFree()
	if k.signal == syscall.SIGKILL {
		require.Empty(t, filesBelow(t, checkpoints), "%s: the worker that finishes the commit must remove the checkpoints, and their lock", k.name)
	}
	require.True(t, worker == 0 || gone(worker), "%s: the lost worker must have ended", k.name)
	require.Equal(t, want, filesBelow(t, dir), "%s: when all processes have ended, the outputs must be unchanged", k.name)
	return strings.Contains(c.err.String(), "making the results visible, after the loss of worker 0")
}

// placed returns the output directories of the job that have their final name.
func placed(t testing.TB, dir string) (all []string) {
	t.Helper()
	for i := range directories {
		out := filepath.Join(dir, fmt.Sprint("out-", i))
		if _, err := os.Lstat(filepath.Join(out, "part-00007.csv")); err == nil {
			all = append(all, out)
		}
	}
	return all
}
