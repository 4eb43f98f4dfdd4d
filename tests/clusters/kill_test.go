//go:build linux && !race

package clusters

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// processCluster is a cluster whose processes tests can kill and start individually.
type processCluster struct {
	t       testing.TB
	dir     string
	address string
	environ []string
	output  *transcript
	manager *proctest.Cmd
	tasks   []*proctest.Cmd // number of a task manager -> its process; nil after it was killed
	slots   int
	flags   []string // further flags of the job manager
}

// startProcesses starts a job manager, with the given further flags, and task managers.
func startProcesses(t testing.TB, taskManagers, slots int, flags ...string) *processCluster {
	t.Helper()
	dir := t.TempDir()
	m := &processCluster{
		t: t, dir: dir, output: new(transcript), slots: slots, flags: flags,
		environ: []string{"SUPERSTEP_TOKEN_FILE=" + filepath.Join(dir, "token")},
		tasks:   make([]*proctest.Cmd, taskManagers),
	}
	t.Cleanup(func() {
		for _, p := range append(m.tasks, m.manager) {
			if p != nil {
				_ = p.Process.Kill()
				_ = p.Wait()
			}
		}
		if t.Failed() {
			t.Logf("output of the cluster:\n%s", m.output)
		}
	})
	m.startManager("127.0.0.1:0")
	for i := range m.tasks {
		m.startTask(i)
	}
	m.requireFree()
	return m
}

var managerLine = regexp.MustCompile(`(?m)^job manager at (\S+)$`)

func (m *processCluster) startManager(listen string) {
	m.t.Helper()
	args := programs.With([]string{"jobmanager", "--listen", listen, "--http", "off",
		"--dir", filepath.Join(m.dir, "jm"), "--token-file", filepath.Join(m.dir, "token"), "--log-level", "info"}, m.flags...)
	cmd := proctest.Command(programs.Build(m.t, "./cmd/superstep"), args...)
	said := new(transcript)
	cmd.Stdout, cmd.Stderr = said, m.output
	require.NoError(m.t, cmd.Start())
	m.manager = cmd
	require.Eventually(m.t, func() bool {
		found := managerLine.FindStringSubmatch(said.String())
		if found != nil {
			m.address = found[1]
		}
		return found != nil
	}, waitLimit, 10*time.Millisecond, "the job manager did not come up: %s", m.output)
}

// startTask starts task manager i, also after it was killed.
func (m *processCluster) startTask(i int) {
	m.t.Helper()
	cmd := proctest.Command(programs.Build(m.t, "./cmd/superstep"), "taskmanager", "--jobmanager", m.address,
		"--name", fmt.Sprintf("tm%d", i), "--slots", strconv.Itoa(m.slots), "--memory", "1GiB",
		"--dir", filepath.Join(m.dir, fmt.Sprintf("tm%d", i)), "--token-file", filepath.Join(m.dir, "token"), "--log-level", "info")
	cmd.Stdout, cmd.Stderr = m.output, m.output
	require.NoError(m.t, cmd.Start())
	m.tasks[i] = cmd
}

// client runs a client command and waits until it has ended.
func (m *processCluster) client(args ...string) programs.Outcome {
	return programs.Execute(m.t, m.environ, programs.Build(m.t, "./cmd/superstep"), append(args, "--cluster", m.address)...)
}

// workersOf returns the PIDs of the worker processes that the task manager pid has started.
func workersOf(t testing.TB, pid int) []int {
	t.Helper()
	var found []int
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	require.NoError(t, err)
	for _, path := range tasks {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(data)) {
			child, err := strconv.Atoi(field)
			require.NoError(t, err)
			found = append(found, child)
		}
	}
	return found
}

// allWorkers returns the PIDs of all worker processes of the cluster.
func (m *processCluster) allWorkers() []int {
	var all []int
	for _, p := range m.tasks {
		if p != nil {
			all = append(all, workersOf(m.t, p.Process.Pid)...)
		}
	}
	return all
}

// gone reports whether a process has ended.
func gone(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	after := data[bytes.LastIndexByte(data, ')')+1:]
	return len(after) > 1 && after[1] == 'Z'
}

// clientRun is a client process that was started.
type clientRun struct {
	cmd      *proctest.Cmd
	out, err transcript
	ended    chan struct{}
}

// submit starts the client of a job that runs for a long time and is not restarted.
func (m *processCluster) submit(more ...string) *clientRun {
	return m.start(programs.With([]string{"--steps", "1000000", "--pause", "1ms", "--restart", "none"}, more...)...)
}

// start starts the client of a job that uses all slots.
func (m *processCluster) start(more ...string) *clientRun {
	m.t.Helper()
	return m.startProgram(programs.Build(m.t, "./tests/clusterjobs"), programs.With([]string{"--progress", "json"}, more...)...)
}

// startProgram starts a program as the client of a job that uses all slots.
func (m *processCluster) startProgram(path string, args ...string) *clientRun {
	m.t.Helper()
	args = append(args, "--cluster", m.address)
	if !slices.Contains(args, "--parallelism") {
		args = append(args, "--parallelism", strconv.Itoa(len(m.tasks)*m.slots))
	}
	c := &clientRun{cmd: proctest.Command(path, args...), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), m.environ...)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.err
	require.NoError(m.t, c.cmd.Start())
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	return c
}

// wait waits until the client has ended and returns its exit code.
func (c *clientRun) wait(t testing.TB, limit time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	select {
	case <-c.ended:
	case <-ctx.Done():
		_ = c.cmd.Process.Kill()
		<-c.ended
		t.Fatalf("the client must end within %v: %s", limit, c.err.String())
	}
	return c.cmd.ProcessState.ExitCode()
}

// A kill is a way to kill a part of a running cluster. do kills the part. It returns the text
// that the client's error must contain, or "" if do killed the client itself. task is the
// number of the task manager that do killed, or -1 if it killed none.
type kill struct {
	name string
	do   func(m *processCluster, c *clientRun, draw *rand.Rand) (want string, task int)
}

var kills = []kill{
	{"worker killed", func(m *processCluster, _ *clientRun, draw *rand.Rand) (string, int) {
		i := draw.IntN(len(m.tasks))
		for _, pid := range workersOf(m.t, m.tasks[i].Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return fmt.Sprintf("tm%d", i), -1
	}},
	{"worker stopped", func(m *processCluster, _ *clientRun, draw *rand.Rand) (string, int) {
		i := draw.IntN(len(m.tasks))
		for _, pid := range workersOf(m.t, m.tasks[i].Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		return fmt.Sprintf("tm%d", i), -1
	}},
	{"task manager killed", func(m *processCluster, _ *clientRun, draw *rand.Rand) (string, int) {
		i := draw.IntN(len(m.tasks))
		_ = m.tasks[i].Process.Kill()
		return fmt.Sprintf("tm%d", i), i
	}},
	{"task manager stopped", func(m *processCluster, _ *clientRun, draw *rand.Rand) (string, int) {
		i := draw.IntN(len(m.tasks))
		_ = m.tasks[i].Process.Signal(syscall.SIGSTOP)
		return fmt.Sprintf("tm%d", i), i
	}},
	{"client killed", func(_ *processCluster, c *clientRun, _ *rand.Rand) (string, int) {
		_ = c.cmd.Process.Kill()
		return "", -1
	}},
}

// TestKills kills parts of a cluster at random moments of a run. Each time the job must fail
// with the first cause, its processes must end, all slots must become free, and the next job
// must succeed.
func TestKills(t *testing.T) {
	t.Parallel()
	rounds := len(kills) // one round per kill
	if testsize.Soak {
		rounds = 100
	}
	m := startProcesses(t, 3, 2)
	for seed := range rounds {
		k := kills[seed%len(kills)]
		t.Logf("seed %d: %s", seed, k.name)
		m.kill(k, uint64(seed))
	}
}

// kill runs a job, kills a part of the cluster, and checks how the job and its processes end.
func (m *processCluster) kill(k kill, seed uint64) {
	t := m.t
	draw := rand.New(rand.NewPCG(seed, 4))
	c := m.submit()
	workers := m.deployed(c, draw)
	began := time.Now()
	want, task := k.do(m, c, draw)
	if want != "" {
		require.NotZero(t, c.wait(t, waitLimit), "seed %d, %s: the client must fail", seed, k.name)
		t.Logf("seed %d: the client ended after %v", seed, time.Since(began).Round(time.Millisecond))
		require.Contains(t, c.err.String(), want, "seed %d, %s", seed, k.name)
	} else {
		<-c.ended
	}
	if task >= 0 {
		_ = m.tasks[task].Process.Kill()
		_ = m.tasks[task].Wait()
		m.startTask(task)
	}
	for _, pid := range workers {
		require.Eventually(t, func() bool { return gone(pid) }, waitLimit, 20*time.Millisecond, "seed %d, %s: worker %d must end", seed, k.name, pid)
	}
	m.requireFree()
	next := programs.Execute(t, m.environ, programs.Build(t, "./tests/clusterjobs"), "--cluster", m.address, "--parallelism", strconv.Itoa(len(m.tasks)*m.slots), "--progress", "off")
	require.Zero(t, next.Code, "seed %d, %s: the next job must succeed: %s", seed, k.name, next.Stderr)
}

// deployed waits until the job runs, and then waits for a random time. It returns the PIDs of
// the workers.
func (m *processCluster) deployed(c *clientRun, draw *rand.Rand) []int {
	t := m.t
	var workers []int
	require.Eventually(t, func() bool {
		workers = m.allWorkers()
		return len(workers) == len(m.tasks)
	}, waitLimit, 5*time.Millisecond, "the job's workers do not start: %s", c.err.String())
	late := time.NewTimer(time.Duration(draw.IntN(1500)) * time.Millisecond)
	defer late.Stop()
	<-late.C
	return workers
}

// TestJobManagerKilled kills the job manager and starts it again. The workers must end within
// the lease, the task managers must reconnect, the client must report the loss, and the job
// must be in the history.
func TestJobManagerKilled(t *testing.T) {
	t.Parallel()
	m := startProcesses(t, 2, 2)
	done := programs.Execute(t, m.environ, programs.Build(t, "./tests/clusterjobs"), "--cluster", m.address, "--parallelism", "4", "--progress", "off")
	require.Zero(t, done.Code, done.Stderr)
	c := m.submit()
	workers := m.deployed(c, rand.New(rand.NewPCG(1, 4)))
	require.NoError(t, m.manager.Process.Kill())
	_ = m.manager.Wait()
	for _, pid := range workers {
		require.Eventually(t, func() bool { return gone(pid) }, waitLimit, 20*time.Millisecond, "worker %d must end", pid)
	}
	m.startManager(m.address)
	m.requireFree()
	require.NotZero(t, c.wait(t, waitLimit))
	require.Contains(t, c.err.String(), "restarted")
	got := m.client("list", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var jobs []struct{ State, Detail string }
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &jobs))
	require.Len(t, jobs, 2)
	require.Equal(t, "failed", jobs[0].State)
	require.Equal(t, "finished", jobs[1].State)
	next := programs.Execute(t, m.environ, programs.Build(t, "./tests/clusterjobs"), "--cluster", m.address, "--parallelism", "4", "--progress", "off")
	require.Zero(t, next.Code, next.Stderr)
}

// TestUserCodeOnACluster runs jobs whose user code fails on one worker. The job must fail with
// the cause, the task managers must keep running, and the next job must succeed.
func TestUserCodeOnACluster(t *testing.T) {
	t.Parallel()
	m := startProcesses(t, 2, 2)
	path := programs.Build(t, "./tests/clusterjobs")
	for _, f := range []struct {
		fault string
		by    int
		want  []string
	}{
		{"error", 3, []string{"the fault that was asked for: TEXT", `Compute "fault"`, "main.go:", "subtask 3 of 4"}},
		{"panic", 0, []string{"panic: the panic that was asked for", "main.go:", "subtask 0 of 4"}},
		{"gopanic", 2, []string{"panic: the panic of a goroutine"}},
		{"exit", 1, []string{"3", "about to exit"}},
		{"exit0", 2, []string{"os.Exit", "0"}},
		{"kill", 3, []string{"killed"}},
		{"stop", 0, []string{"silent"}},
		{"memory", 2, []string{"memory"}},
		{"input", 0, []string{"tm", "no/such/file.csv"}},
	} {
		got := programs.Execute(t, m.environ, path, "--cluster", m.address, "--parallelism", "4", "--progress", "off", "--pause", "2ms", "--restart", "none",
			"--fault", f.fault, "--by", strconv.Itoa(f.by), "--text", "TEXT", "--input", "no/such/file.csv")
		require.Equal(t, 1, got.Code, "with fault %s the job must fail with code 1: %s", f.fault, got.Stderr)
		for _, want := range f.want {
			require.Contains(t, got.Stderr, want, f.fault)
		}
		m.requireFree()
	}
	noise := programs.Execute(t, m.environ, path, "--cluster", m.address, "--parallelism", "4", "--progress", "off", "--fault", "noise", "--text", "after the noise")
	require.Zero(t, noise.Code, noise.Stderr)
	plain := programs.Execute(t, m.environ, path, "--cluster", m.address, "--parallelism", "4", "--progress", "off")
	require.Zero(t, plain.Code, plain.Stderr)
	require.Equal(t, plain.Stdout, noise.Stdout, "output that a worker prints must not reach the client's standard output")
	local := programs.Execute(t, nil, path, "--progress", "off")
	require.Equal(t, local.Stdout, plain.Stdout)
	require.Empty(t, m.allWorkers())
}
