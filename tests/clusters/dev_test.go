//go:build !race

package clusters

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
	"github.com/superstep-ml/superstep/tests/internal/sweep"
)

// A devCluster is a running "superstep dev" with all its processes. Tests start it in the same
// way as users.
type devCluster struct {
	address string
	environ []string // environment for clients
	cmd     *proctest.Cmd
	dir     string
	output  *transcript
}

// transcript is an io.Writer that stores the output of a process, so that messages of failing
// tests can contain it.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends text to the stored output.
func (w *transcript) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

// String returns the output so far.
func (w *transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

var clusterLine = regexp.MustCompile(`^cluster at (\S+): (\d+) task managers, (\d+) slots$`)

// startDev starts a cluster and waits until all its task managers are registered. At the end of
// the test it stops the cluster, and requires that no process and no file remains.
func startDev(t testing.TB, taskManagers, slots int, more ...string) *devCluster {
	t.Helper()
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	args := append([]string{"dev", "--taskmanagers", strconv.Itoa(taskManagers), "--slots", strconv.Itoa(slots),
		"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--token-file", token, "--dir", filepath.Join(dir, "dev"),
		"--log-level", "warn"}, more...)
	c := &devCluster{
		cmd:     proctest.Command(programs.Build(t, "./cmd/superstep"), args...),
		environ: []string{"SUPERSTEP_TOKEN_FILE=" + token},
		dir:     dir, output: new(transcript),
	}
	c.cmd.Env = os.Environ()
	c.cmd.Stderr = c.output
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(c.output, lines.Text())
		if m := clusterLine.FindStringSubmatch(lines.Text()); m != nil {
			c.address = m[1]
			break
		}
	}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		_, _ = io.Copy(c.output, out)
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		<-rest
		err := c.cmd.Wait()
		if c.address != "" {
			require.NoError(t, err, "%s", c.output)
		}
		if t.Failed() {
			t.Logf("output of the cluster:\n%s", c.output)
		}
	})
	require.NotEmpty(t, c.address, "the cluster must print its address: %s", c.output)
	return c
}

// ask runs a client command on the cluster and waits until it has ended.
func (c *devCluster) ask(t testing.TB, args ...string) programs.Outcome {
	t.Helper()
	return programs.Execute(t, c.environ, programs.Build(t, "./cmd/superstep"), append(args, "--cluster", c.address)...)
}

// free returns the number of free slots of the cluster, and the number of all slots.
func (c *devCluster) free(t testing.TB) (free, of int) {
	t.Helper()
	got := c.ask(t, "nodes")
	require.Zero(t, got.Code, got.Stderr)
	m := regexp.MustCompile(`(\d+) of (\d+) slots are free`).FindStringSubmatch(got.Stdout)
	require.NotNil(t, m, got.Stdout)
	free, _ = strconv.Atoi(m[1])
	of, _ = strconv.Atoi(m[2])
	return free, of
}

// layouts has the shapes of clusters with at least six slots.
var layouts = []struct {
	taskManagers, slots int
	placement           string
}{
	{1, 6, "pack"}, {2, 3, "spread"}, {3, 2, "spread"}, {3, 4, "pack"}, {4, 2, "spread"}, {5, 2, "pack"}, {6, 1, "spread"},
}

// TestSameBitsOnClusters runs the workloads of the same-bits suite on clusters. Every byte of
// the results must be the same as with one subtask in one process.
func TestSameBitsOnClusters(t *testing.T) {
	t.Parallel()
	some := layouts[2:4]
	parallelism := []int{6, 2}
	if testsize.Soak {
		some, parallelism = layouts, []int{6, 1, 2, 3, 5}
	}
	path := programs.Build(t, "./tests/samebits")
	var clusters []*devCluster
	for _, l := range some {
		clusters = append(clusters, startDev(t, l.taskManagers, l.slots, "--placement", l.placement))
	}
	for _, w := range sweep.Workloads(t, path) {
		if slices.Contains(ofTrees, w.Name) && !testsize.Soak {
			continue // TestTreesOnThreeTaskManagers runs these workloads
		}
		local := sweep.Sweep{Build: "one process", Path: path, Shards: 128, Parallelism: parallelism, BatchRows: []int{1024}, Procs: []int{0}}
		on, there := some, parallelism
		if !testsize.Soak && !w.DependsOnParallelism {
			local.Parallelism = parallelism[:1] // tests/samebits compares the parallelisms within one process
		}
		if w.Size != sweep.Small && !testsize.Soak {
			on, there = some[:1], parallelism[:1] // the other layouts run operators and queues
		}
		out := t.TempDir()
		digests := local.Run(t, w.Name, out)
		for i, l := range on {
			c, s := clusters[i], local
			s.Parallelism, s.Forget = there, i == 1 && w.Queues > 0
			s.Build, s.Environ = fmt.Sprintf("%d task managers of %d slots, %s", l.taskManagers, l.slots, l.placement), c.environ
			s.Cluster = c.address
			digests = append(digests, s.Run(t, w.Name, out)...)
		}
		require.Empty(t, sweep.Differences(digests, w.DependsOnParallelism, out), w.Name)
	}
}

// ofTrees has the names of the workloads that train trees.
var ofTrees = []string{"boosted", "forests"}

// TestTreesOnThreeTaskManagers trains trees at several parallelisms on three task managers.
// Every byte of the model files must be the same as with one subtask in one process.
func TestTreesOnThreeTaskManagers(t *testing.T) {
	t.Parallel()
	c := startDev(t, 3, 3, "--placement", "spread")
	here := sweep.Sweep{Build: "one process", Path: programs.Build(t, "./tests/samebits"), Shards: 128, Parallelism: []int{1}, BatchRows: []int{1024}, Procs: []int{0}}
	there := here
	there.Build, there.Environ, there.Cluster = "three task managers", c.environ, c.address
	there.Parallelism = []int{2, 8}
	if testsize.Soak {
		there.Parallelism = []int{1, 2, 3, 8}
	}
	for _, workload := range ofTrees {
		out := t.TempDir()
		digests := append(here.Run(t, workload, out), there.Run(t, workload, out)...)
		files := 0
		for _, d := range digests {
			if strings.HasPrefix(d.Piece, "file of ") {
				files++
			}
		}
		require.Greater(t, files, len(there.Parallelism))
		require.Empty(t, sweep.Differences(digests, false, out), workload)
	}
}

// TestTheSameProgramOnACluster runs the program of the first example locally and on a cluster,
// and compares the output.
func TestTheSameProgramOnACluster(t *testing.T) {
	t.Parallel()
	path := programs.Build(t, "./examples/kmeans")
	here := programs.Execute(t, nil, path, "--parallelism", "6", "--progress", "off")
	require.Zero(t, here.Code, here.Stderr)
	c := startDev(t, 3, 2)
	for range 2 { // in the second round, the cluster has the executable already
		there := programs.Execute(t, c.environ, path, "--cluster", c.address, "--parallelism", "6", "--progress", "off")
		require.Zero(t, there.Code, "%s\n%s", there.Stderr, c.output)
		require.Equal(t, withoutTimes(here.Stdout), withoutTimes(there.Stdout))
	}
	free, of := c.free(t)
	require.Equal(t, 6, of)
	require.Equal(t, of, free)
	list := c.ask(t, "list")
	require.Zero(t, list.Code, list.Stderr)
	require.Equal(t, 2, strings.Count(list.Stdout, "finished"), list.Stdout)
}

var times = regexp.MustCompile(`[0-9.]+ ?(ms|µs|ns|s)\b`)

// withoutTimes returns s with a fixed text in place of durations, which differ from run to run.
func withoutTimes(s string) string { return times.ReplaceAllString(s, "TIME") }

// interrupted runs a client, sends it a signal when its output contains the text, and waits
// until it has ended.
func interrupted(t testing.TB, environ []string, text string, signal os.Signal, path string, args ...string) programs.Outcome {
	t.Helper()
	ctx, cancel := programs.Deadline(t)
	defer cancel()
	cmd := proctest.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = programs.Root(), append(os.Environ(), environ...)
	var out bytes.Buffer
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var said strings.Builder
	sent := false
	for buf := make([]byte, 4096); ; {
		n, err := stderr.Read(buf)
		said.Write(buf[:n])
		if !sent && strings.Contains(said.String(), text) {
			sent = true
			require.NoError(t, cmd.Process.Signal(signal))
		}
		if err != nil {
			break
		}
	}
	_ = cmd.Wait()
	require.True(t, sent, "%q must appear in the output: %s", text, said.String())
	return programs.Outcome{Code: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: said.String()}
}

// TestCtrlCOnACluster requires that, when a client is interrupted, its job is cancelled and the
// job's slots become free.
func TestCtrlCOnACluster(t *testing.T) {
	t.Parallel()
	c := startDev(t, 2, 2)
	got := interrupted(t, c.environ, "running", os.Interrupt, programs.Build(t, "./tests/clusterjobs"),
		"--cluster", c.address, "--parallelism", "4", "--steps", "1000000", "--pause", "1ms", "--progress", "json")
	require.Equal(t, 1, got.Code, got.Stderr)
	require.Contains(t, got.Stderr, "cancel")
	list := c.ask(t, "list")
	require.Contains(t, list.Stdout, "cancelled", list.Stdout)
	free, of := c.free(t)
	require.Equal(t, of, free)
}
