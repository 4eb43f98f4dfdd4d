//go:build linux && !race

package clusters

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
	"github.com/superstep-ml/superstep/tests/internal/sweep"
)

// The largest cluster that tests start on one machine has manyTaskManagers task managers with
// manySlots slots each.
const (
	manyTaskManagers = 20
	manySlots        = 10
	manyShards       = 1024
)

// TestManySlots runs jobs on all slots of many task managers. One of the jobs has at least ten
// vertices, and its results must have the same bits as with one subtask in one process.
func TestManySlots(t *testing.T) {
	t.Parallel()
	path := programs.Build(t, "./tests/samebits")
	c := startDev(t, manyTaskManagers, manySlots)
	before := c.nodes(t)
	for _, workload := range []string{"operators", "sums"} {
		out := t.TempDir()
		s := sweep.Sweep{Build: "one process", Path: path, Shards: manyShards, Parallelism: []int{1}, BatchRows: []int{1024}, Procs: []int{0}}
		digests := s.Run(t, workload, out)
		s.Build, s.Environ, s.Cluster = "many task managers", c.environ, c.address
		s.Parallelism = []int{manyTaskManagers * manySlots}
		digests = append(digests, s.Run(t, workload, out)...)
		require.Empty(t, sweep.Differences(digests, false, out), workload)
	}
	jobs := c.jobs(t)
	require.Len(t, jobs, 2)
	for _, j := range jobs {
		require.Equal(t, "finished", j.State)
		require.Len(t, j.Workers, manyTaskManagers, "every task manager must have a worker")
	}
	c.requireSteady(t, before)
}

// TestNobodyIsLost keeps every slot of a cluster busy with one job after another on an
// overloaded machine. No task manager and no worker may count as lost: the jobs must succeed,
// and no task manager may have to register again.
func TestNobodyIsLost(t *testing.T) {
	t.Parallel()
	long, hogs, steps := time.Second, 1, "10"
	if testsize.Soak {
		long, hogs, steps = 10*time.Minute, 4, "100"
	}
	path := programs.Build(t, "./tests/clusterjobs")
	c := startDev(t, manyTaskManagers, manySlots)
	before := c.nodes(t)
	useProcessors(t, hogs)
	loads := [][]string{
		{"--rows", "400000", "--steps", steps}, // this job sends every row to every subtask, and then computes
		{"--rows", "2000", "--steps", steps, "--pause", "20ms"},
		{"--rows", "1000000", "--steps", "5"},
	}
	runs := 0
	for end := time.Now().Add(long); time.Now().Before(end); runs++ {
		args := append([]string{"--cluster", c.address, "--parallelism", strconv.Itoa(manyTaskManagers * manySlots),
			"--shards", strconv.Itoa(manyShards), "--progress", "off"}, loads[runs%len(loads)]...)
		began := time.Now()
		got := programs.Execute(t, c.environ, path, args...)
		require.Zero(t, got.Code, "job %d must succeed: %s", runs, got.Stderr)
		t.Logf("job %d took %v", runs, time.Since(began).Round(time.Millisecond))
		c.requireSteady(t, before)
	}
	require.NotZero(t, runs)
	for _, j := range c.jobs(t) {
		require.Equal(t, "finished", j.State)
		require.Equal(t, 1, j.Attempt, "the job must succeed at the first attempt")
	}
}

// useProcessors starts n processes that use processor time and do nothing else, until the test
// or this process ends.
func useProcessors(t *testing.T, n int) {
	t.Helper()
	for range n {
		cmd := proctest.Command("/bin/sh", "-c", `while kill -0 $PPID; do i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; done`)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// node is a task manager in the output of "superstep nodes". A task manager that was lost and
// registers again has another identity and another start time.
type node struct {
	ID, Name, State string
	Since           time.Time
	Slots           int
}

// nodes returns the task managers, sorted by name.
func (c *devCluster) nodes(t testing.TB) []node {
	t.Helper()
	return askJSON[node](t, c, "nodes")
}

// requireSteady requires that the task managers are the same as before, and that all their
// slots are free.
func (c *devCluster) requireSteady(t testing.TB, before []node) {
	t.Helper()
	require.Len(t, before, manyTaskManagers)
	require.True(t, slices.Equal(before, c.nodes(t)), "the task managers must still be %v, and are %v\n%s", before, c.nodes(t), c.output)
	require.Eventually(t, func() bool {
		free, of := c.free(t)
		return free == of
	}, waitLimit, askEvery)
}

// ranJob is a job in the output of "superstep list".
type ranJob struct {
	ID, State string
	Attempt   int
	Workers   []struct{}
}

// jobs returns the jobs of the cluster.
func (c *devCluster) jobs(t testing.TB) []ranJob {
	t.Helper()
	return askJSON[ranJob](t, c, "list")
}

// askJSON runs a client command that prints a list in JSON, and returns the list.
func askJSON[T any](t testing.TB, c *devCluster, command string) []T {
	t.Helper()
	got := c.ask(t, command, "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var all []T
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &all), fmt.Sprintf("%s: %s", command, got.Stdout))
	return all
}
