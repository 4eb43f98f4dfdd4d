//go:build linux && !race

package builtin_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
)

// build writes an executable that behaves like the test binary but counts as a different build:
// name is appended to its bytes, so that its hash differs. build returns the path and the hash.
func (w *testDir) build(name string) (path, hash string) {
	w.t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	require.NoError(w.t, err)
	program = append(program, name...)
	require.NoError(w.t, os.WriteFile(w.path(name), program, 0o700))
	return w.path(name), hashOf(program)
}

// begin starts a command line with the executable build, and stops the process when the test
// ends. It returns the process and, except for a task manager, the first line of its output.
func (w *testDir) begin(build, line string) (*proctest.Cmd, string) {
	w.t.Helper()
	cmd := w.command(build, line)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	w.t.Cleanup(func() { w.end(cmd) })
	if strings.HasPrefix(line, "taskmanager") {
		return cmd, ""
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(w.t, err)
	return cmd, first
}

// end stops a process with SIGTERM and waits for it, unless it has been waited for.
func (w *testDir) end(cmd *proctest.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
}

// of runs a command line with the executable build. It returns the same results as run.
func (w *testDir) of(build, line string) (code int, out, errOut string) {
	w.t.Helper()
	cmd := w.command(build, line)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// awaitNodes waits until n task managers are alive, and returns the output of the command that
// lists them.
func (w *testDir) awaitNodes(build, on string, n int) string {
	w.t.Helper()
	for {
		_, out, _ := w.of(build, "nodes"+on)
		if strings.Count(out, " alive ") == n {
			return out
		}
		select {
		case <-w.t.Context().Done():
			w.t.Fatal(out)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// newest returns the id of the newest job, and the hash of the executable that its workers run.
func (w *testDir) newest(build, on string) (id, artifact string) {
	w.t.Helper()
	code, out, errOut := w.of(build, "list -o json"+on)
	require.Zero(w.t, code, errOut)
	var jobs []struct{ ID, State, Artifact string }
	require.NoError(w.t, json.Unmarshal([]byte(out), &jobs))
	require.NotEmpty(w.t, jobs)
	return jobs[0].ID, jobs[0].Artifact
}

// ran returns the lines of the job's log in which its workers report their builds (see
// TestMain).
func (w *testDir) ran(build, on, job string) []string {
	w.t.Helper()
	_, out, _ := w.of(build, "logs "+job+on)
	return regexp.MustCompile(`this worker runs [0-9a-f]{64}`).FindAllString(out, -1)
}

// TestMixedBuilds runs a job manager, two task managers and clients with four different builds.
// It requires that all workers of a built-in job run the client's build, even if the executable
// file of a task manager was replaced while the task manager ran. If the job manager accepts no
// uploads, it requires that a job runs if the job manager or a task manager has the client's
// build, and that the job is refused otherwise.
func TestMixedBuilds(t *testing.T) {
	w := newTestDir(t)
	manager, managerHash := w.build("manager")
	old, oldHash := w.build("old")
	upgraded, upgradedHash := w.build("upgraded")
	client, clientHash := w.build("client")
	w.env = append(w.env, "SUPERSTEP_TOKEN_FILE="+w.path("token"))
	const train = "train logistic --input titanic.csv --label survived --features age,fare --missing fill --if-exists replace"

	serve := func(more string) (*proctest.Cmd, string) {
		cmd, first := w.begin(manager, "jobmanager --listen 127.0.0.1:0 --http off --log-level error --token-file token --dir jm"+more)
		return cmd, strings.TrimSpace(strings.TrimPrefix(first, "job manager at "))
	}
	jm, address := serve("")
	on := " --cluster " + address
	offer := func(build, name string) *proctest.Cmd {
		cmd, _ := w.begin(build, "taskmanager --slots 1 --memory 128MiB --log-level error --name "+name+" --dir "+name+" --jobmanager "+address)
		return cmd
	}
	a, b := offer(old, "tm-old"), offer(upgraded, "tm-upgraded")
	nodes := w.awaitNodes(client, on, 2)
	require.Contains(t, nodes, " "+oldHash[:12]+" ")
	require.Contains(t, nodes, " "+upgradedHash[:12]+" ")
	require.NoError(t, os.Remove(upgraded))
	require.NoError(t, os.WriteFile(upgraded, []byte("half an upgrade"), 0o700))

	for _, build := range []struct{ path, hash string }{{client, clientHash}, {old, oldHash}, {manager, managerHash}} {
		code, _, errOut := w.of(build.path, train+" --parallelism 2 --model model.json"+on)
		require.Zero(t, code, errOut)
		id, artifact := w.newest(client, on)
		require.Equal(t, build.hash, artifact)
		require.Equal(t, []string{"this worker runs " + build.hash, "this worker runs " + build.hash}, w.ran(client, on, id))
	}
	here, _, errOut := w.of(client, train+" --model here.json")
	require.Zero(t, here, errOut)
	require.Equal(t, w.read("here.json"), w.read("model.json"), "a model must not depend on the build that trains it")
	_, shown, _ := w.of(client, "show "+func() string { id, _ := w.newest(client, on); return id }()+on)
	require.Contains(t, shown, managerHash)

	w.end(a)
	w.end(b)
	w.end(jm)
	_, address = serve(" --no-uploads")
	on = " --cluster " + address
	require.NoError(t, os.Remove(upgraded))
	upgraded, _ = w.build("upgraded")
	offer(old, "tm-old")
	offer(upgraded, "tm-upgraded")
	w.awaitNodes(client, on, 2)
	code, _, errOut := w.of(client, train+" --parallelism 1 --model model.json"+on)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "takes no uploads")
	for _, hash := range []string{managerHash, oldHash, upgradedHash, clientHash} {
		require.Contains(t, errOut, hash[:12])
	}
	for _, build := range []struct{ path, hash string }{{upgraded, upgradedHash}, {manager, managerHash}} {
		code, _, errOut := w.of(build.path, train+" --parallelism 1 --model model.json"+on)
		require.Zero(t, code, errOut)
		id, artifact := w.newest(client, on)
		require.Equal(t, build.hash, artifact)
		require.Equal(t, []string{"this worker runs " + build.hash}, w.ran(client, on, id))
	}
	code, _, errOut = w.of(upgraded, train+" --parallelism 2 --wait-timeout 100ms --model model.json"+on)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "runs executable "+upgradedHash[:12]+" itself")
}
