//go:build linux && !race

package clusters

import (
	"bytes"
	"context"
	"crypto/rand"
	"debug/elf"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestBadInputOfClusters sends every kind of bad input, of users and of unauthorised clients,
// to one cluster. Each time, the sender must get a message that says what to do. Afterwards the
// same processes must still run, all slots must be free, and the next job must give the same
// bits.
func TestBadInputOfClusters(t *testing.T) {
	t.Parallel()
	s := startCluster(t, clusterOptions{taskManagers: 2, slots: 2})
	for _, c := range []struct {
		name string
		test func(t *testing.T, s *testCluster)
	}{
		{"wrong token", wrongToken},
		{"no token", noToken},
		{"TLS to plaintext", tlsToPlaintext},
		{"task managers of other versions", otherVersions},
		{"submissions by hand", badSubmissions},
		{"more parallelism than slots", tooFewSlots},
		{"inputs of the client alone", inputsOfTheClient},
		{"artifacts", badArtifacts},
		{"two task managers of one identity", duplicateTaskManagers},
		{"a body of 100 MB", hugeBody},
		{"clients that stop reading", stoppedReaders},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(t, s)
			s.requireIntact(t)
		})
	}
}

// wrongToken runs clients and task managers with the token of another cluster.
func wrongToken(t *testing.T, s *testCluster) {
	path := filepath.Join(t.TempDir(), "token")
	other, err := security.CreateToken(path)
	require.NoError(t, err)
	const why = "this is not the token of this job manager"
	got := s.run("--token-file", path)
	require.Equal(t, 1, got.Code)
	require.Empty(t, got.Stdout)
	says(t, got.Stderr, why, "--token-file", "the token shown was from "+path)
	got = s.client("nodes", "--token-file", path)
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, why)
	got = within(t, waitLimit, s.taskManager("stranger", "--token-file", path))
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, "refuses this task manager", why)
	require.Equal(t, http.StatusUnauthorized, s.get(t, other.Reveal()))
	for _, said := range []string{got.Stderr, s.output.String()} {
		require.NotContains(t, said, other.Reveal(), "a token is in a message")
	}
}

// get sends an HTTP request with a token, and returns the status code of the answer.
func (s *testCluster) get(t *testing.T, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http+"/api/v1/jobs", nil)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(req)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

// noToken runs clients and task managers that find no token.
func noToken(t *testing.T, s *testCluster) {
	none := []string{"SUPERSTEP_TOKEN_FILE=", "SUPERSTEP_TOKEN=", "XDG_RUNTIME_DIR=" + t.TempDir(), "TMPDIR=" + t.TempDir()}
	for _, cmd := range []*proctest.Cmd{
		proctest.Command(programs.Build(t, "./tests/clusterjobs"), "--cluster", s.address),
		proctest.Command(programs.Build(t, "./cmd/superstep"), "nodes", "--cluster", s.address),
		proctest.Command(programs.Build(t, "./cmd/superstep"), "taskmanager", "--jobmanager", s.address, "--dir", t.TempDir()),
	} {
		got := within(t, waitLimit, cmd, none...)
		require.Equal(t, 1, got.Code, got.Stderr)
		says(t, got.Stderr, "no token for port", "--token-file")
	}
	require.Equal(t, http.StatusUnauthorized, s.get(t, ""))
	token, err := security.ReadToken(filepath.Join(s.dir, "token"))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, s.get(t, token.Reveal()))
}

// tlsToPlaintext runs clients and task managers with TLS, although the job manager does not use
// TLS.
func tlsToPlaintext(t *testing.T, s *testCluster) {
	secured := s.with(filepath.Join(t.TempDir(), "tls"))
	_, err := security.InitTLS(secured.tls, nil, false)
	require.NoError(t, err)
	const why = "the job manager does not speak TLS: drop --tls-ca"
	got := secured.run()
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, why)
	got = secured.client("list")
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, why)
	says(t, warned(t, secured.taskManager("secured"), "no connection to the job manager"), why)
}

// TestPlaintextToTLS requires that a client without TLS gets the message that the job manager
// uses TLS, and that the same job succeeds with TLS.
func TestPlaintextToTLS(t *testing.T) {
	t.Parallel()
	s := startCluster(t, clusterOptions{tls: true, taskManagers: 2, slots: 1})
	plain := s.with("")
	const why = "what answers there speaks no gRPC without TLS: if it is a job manager with TLS, give --tls-ca"
	got := plain.run("--parallelism", "2")
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, why)
	got = plain.client("nodes")
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, why)
	says(t, warned(t, plain.taskManager("plain"), "no connection to the job manager"), why)

	got = plain.run("--tls-ca", filepath.Join(s.tls, "ca.pem"))
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, "the job manager needs a certificate: give --tls-cert and --tls-key")
	got = plain.run(s.certificates("jobmanager")...)
	require.Equal(t, 1, got.Code, "the certificate of a job manager must not be accepted from a client")
	says(t, got.Stderr, "certificate")
	other := s.with(filepath.Join(t.TempDir(), "tls"))
	_, err := security.InitTLS(other.tls, nil, false)
	require.NoError(t, err)
	got = other.run()
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, "of an authority that we do not know: give its ca.pem with --tls-ca")
	answer, err := http.Get("http" + strings.TrimPrefix(s.http, "https") + "/healthz")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusBadRequest, answer.StatusCode, "a plaintext request to the HTTPS port must be refused")
	s.requireIntact(t)
}

// warned starts a process that keeps trying to connect, waits until it prints mark, ends it,
// and returns its output.
func warned(t *testing.T, cmd *proctest.Cmd, mark string) string {
	t.Helper()
	said := new(transcript)
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	require.Eventually(t, func() bool { return strings.Contains(said.String(), mark) }, waitLimit, 5*time.Millisecond, "%s", said)
	return said.String()
}

// otherVersions registers task managers with the previous and with the next version of the
// protocol.
func otherVersions(t *testing.T, s *testCluster) {
	c := s.dial(t)
	for version, upgrade := range map[int]string{wire.Version - 1: "upgrade the task manager", wire.Version + 1: "upgrade the job manager"} {
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		stream, err := c.Connect(ctx)
		require.NoError(t, err)
		require.NoError(t, stream.Send(&wire.FromTaskManager{Register: &wire.Register{
			Version: version, Build: "another", ID: rand.Text(), Incarnation: rand.Text(), Name: "stranger", Slots: 64, Memory: 1 << 30,
		}}))
		answer, err := stream.Recv()
		require.NoError(t, err)
		require.NotNil(t, answer.Refused)
		require.True(t, answer.Refused.Final, "the refusal must be final, because trying again is of no use")
		says(t, answer.Refused.Reason, upgrade)
		cancel()
		got := s.client("nodes")
		require.NotContains(t, got.Stdout, "stranger")
		spec := validSpec(t, "")
		spec.Version = version
		_, err = c.Submit(t.Context(), &wire.SubmitRequest{Spec: spec})
		require.ErrorContains(t, err, "upgrade the "+map[bool]string{true: "client", false: "job manager"}[version < wire.Version])
	}
}

// badSubmissions submits jobs that do not exist in the uploaded program, and other invalid
// submissions.
func badSubmissions(t *testing.T, s *testCluster) {
	got := s.run("--parallelism", "4") // this job uploads the program
	require.Zero(t, got.Code, got.Stderr)
	data, err := os.ReadFile(programs.Build(t, "./tests/clusterjobs"))
	require.NoError(t, err)
	hash, c := sha256Of(data), s.dial(t)
	info, _ := s.submitted(t, c, validSpec(t, hash))
	require.Equal(t, wire.JobFinished, info.State, "a job that is submitted without a graph must be resolved by a worker: %+v", info.Failure)
	bend := func(change func(g *plan.Graph)) []byte {
		p, err := plan.DecodePlan(info.Plan)
		require.NoError(t, err)
		g := &plan.Graph{Job: p.Job, Shards: p.Shards, Seed: p.Seed, Nodes: p.Nodes, Queues: p.Queues}
		require.Equal(t, p.Fingerprint, g.Fingerprint())
		change(g)
		bent, err := g.JSON()
		require.NoError(t, err)
		return bent
	}
	unknown, err := msgpack.Marshal(map[string]any{"Rows": 100, "Shoe": 43})
	require.NoError(t, err)
	text, err := msgpack.Marshal(map[string]any{"Rows": "many"})
	require.NoError(t, err)
	for name, b := range map[string]struct {
		change func(*wire.JobSpec)
		says   []string
	}{
		"another job": {func(spec *wire.JobSpec) { spec.Name = "kmeens" }, []string{`"kmeens"`, "clusterjobs"}},
		"another job with a graph": {func(spec *wire.JobSpec) {
			spec.Name, spec.Graph = "kmeens", bend(func(g *plan.Graph) { g.Job = "kmeens" })
		}, []string{`"kmeens"`, "clusterjobs"}},
		"built-in job":            {func(spec *wire.JobSpec) { spec.Artifact = "" }, []string{`"clusterjobs"`, "kmeans"}},
		"arguments it has not":    {func(spec *wire.JobSpec) { spec.Args = unknown }, []string{"arguments do not decode", "Shoe"}},
		"arguments of other type": {func(spec *wire.JobSpec) { spec.Args, spec.Graph = text, bend(func(*plan.Graph) {}) }, []string{"arguments do not decode"}},
		"arguments cut short":     {func(spec *wire.JobSpec) { spec.Args = spec.Args[:len(spec.Args)/2] }, []string{"arguments do not decode"}},
		"arguments of garbage":    {func(spec *wire.JobSpec) { spec.Args = bytes.Repeat([]byte{0xc1}, 100) }, []string{"arguments do not decode"}},
		"arguments that are huge": {func(spec *wire.JobSpec) { spec.Args = []byte{0xdf, 0xff, 0xff, 0xff, 0xff} }, []string{"arguments do not decode"}},
		"another fingerprint": {func(spec *wire.JobSpec) {
			spec.Graph = bend(func(g *plan.Graph) { g.Nodes[0].Func = "main.other other.go:1" })
		}, []string{"builds another graph", "main.other other.go:1", "main.go:"}},
		"other facts": {func(spec *wire.JobSpec) {
			spec.Graph = bend(func(g *plan.Graph) { g.Facts = append(g.Facts, plan.Fact{Name: "moon", Value: "full"}) })
		}, []string{"moon"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := validSpec(t, hash)
			b.change(&spec)
			info, shown := s.submitted(t, c, spec)
			require.Equal(t, wire.JobFailed, info.State)
			require.NotNil(t, info.Failure)
			require.Equal(t, wire.MisuseFailure, info.Failure.Kind, info.Failure.Message)
			says(t, shown, b.says...)
		})
	}
}

// tooFewSlots submits a job that needs more slots than the cluster has. The job must wait, say
// what it waits for, and fail after --wait-timeout.
func tooFewSlots(t *testing.T, s *testCluster) {
	got := programs.Execute(t, s.environ, programs.Build(t, "./tests/clusterjobs"), "--cluster", s.address, "--parallelism", "9", "--wait-timeout", "1s", "--progress", "plain")
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, "waiting for 9 slots", "the cluster has 4 slots in all", "5 too few", "gave up after 1s")
	got = programs.Execute(t, s.environ, programs.Build(t, "./tests/clusterjobs"), "--cluster", s.address, "--parallelism", "7", "--detach")
	require.Zero(t, got.Code, got.Stderr)
	id := strings.TrimSpace(got.Stdout)
	list := s.client("list", "--state", "waiting")
	require.Zero(t, list.Code, list.Stderr)
	says(t, list.Stdout, id, "waiting", "3 too few")
	cancelled := s.client("cancel", id)
	require.Zero(t, cancelled.Code, cancelled.Stderr)
	got = programs.Execute(t, s.environ, programs.Build(t, "./tests/clusterjobs"), "--cluster", s.address, "--parallelism", "200")
	require.Equal(t, 2, got.Code, "a parallelism that exceeds the number of shards must be refused as a wrong command line")
	says(t, got.Stderr, "128 shards")
}

// inputsOfTheClient runs jobs whose input the client can read when it builds the job, but the
// workers cannot. All processes are on one machine, so the test removes the input while the job
// waits for slots.
func inputsOfTheClient(t *testing.T, s *testCluster) {
	for _, c := range []struct {
		name   string
		input  string // path as the user types it
		spoil  func(dir string) error
		reason string
	}{
		{"absolute path", "DIR/points.csv", func(dir string) error { return os.Remove(filepath.Join(dir, "points.csv")) }, "does not exist"},
		{"relative path", "points.csv", func(dir string) error { return os.Remove(filepath.Join(dir, "points.csv")) }, "does not exist"},
		{"directory of the client", "points.csv", os.RemoveAll, "which is not there"},
		{"a directory instead", "points.csv", func(dir string) error {
			path := filepath.Join(dir, "points.csv")
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		}, "changed"},
		{"other contents", "points.csv", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "points.csv"), []byte("x\n1\n2\n3\n4\n"), 0o600)
		}, "changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "points.csv")
			require.NoError(t, os.WriteFile(path, []byte("x\n1\n2\n"), 0o600))
			before := s.submit() // this job occupies all slots
			s.deployedAll(t)
			input := strings.ReplaceAll(c.input, "DIR", dir)
			cmd := proctest.Command(programs.Build(t, "./tests/clusterjobs"), "--cluster", s.address, "--parallelism", "2",
				"--progress", "json", "--fault", "input", "--input", input)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), s.environ...)
			run := &clientRun{cmd: cmd, ended: make(chan struct{})}
			cmd.Stdout, cmd.Stderr = &run.out, &run.err
			require.NoError(t, cmd.Start())
			go func() {
				_ = cmd.Wait()
				close(run.ended)
			}()
			require.Eventually(t, func() bool { return strings.Contains(run.err.String(), "waiting") }, waitLimit, 5*time.Millisecond, "%s", &run.err)
			require.NoError(t, c.spoil(dir))
			require.NoError(t, before.cmd.Process.Signal(os.Interrupt)) // the interrupt cancels the job of this client
			require.Equal(t, 1, before.wait(t, waitLimit))
			require.Equal(t, 1, run.wait(t, waitLimit))
			says(t, run.err.String(), "tm", "points.csv", c.reason)
		})
	}
}

// deployedAll waits until every task manager runs a worker.
func (s *testCluster) deployedAll(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.allWorkers()) == len(s.tasks) }, waitLimit, 5*time.Millisecond, "%s", s.output)
}

// badArtifacts uploads files that are not executables, and executables whose hash or size
// differs from the announced hash or size.
func badArtifacts(t *testing.T, s *testCluster) {
	path := programs.Build(t, "./tests/clusterjobs")
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("#!/bin/sh\nexit 0\n"), 0o755))
	got := s.run("--worker-binary", text)
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, "--worker-binary", text, "is not a Go program")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	large := filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(large, data, 0o755))
	require.NoError(t, os.Truncate(large, 2<<30)) // a sparse file
	got = s.run("--worker-binary", large)
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, "it has 2 GiB, more than the 1 GiB that the cluster accepts", "-ldflags=-s")

	c := s.dial(t)
	script, half, marked := []byte("#!/bin/sh\n"), data[:len(data)/2], append([]byte("x"), data...)
	for name, u := range map[string]struct {
		hash string
		size int64
		data []byte
		says string
	}{
		"wrong hash":      {sha256Of(script), int64(len(marked)), marked, "its SHA-256 is"},
		"cut short":       {sha256Of(marked), int64(len(marked)), marked[:1000], "cut short"},
		"half a program":  {sha256Of(half), int64(len(half)), half, "headers do not make an executable"},
		"a script":        {sha256Of(script), int64(len(script)), script, "it is a script"},
		"no executable":   {sha256Of(marked), int64(len(marked)), marked, "as no executable does"},
		"too large":       {sha256Of(half), 2 << 30, half, "--max-artifact"},
		"a path for hash": {"../../token", int64(len(data)), data, "not a SHA-256"},
	} {
		err := uploadBytes(t, c, u.hash, u.size, u.data)
		require.Error(t, err, name)
		says(t, err.Error(), u.says)
	}
	spec := validSpec(t, sha256Of(half))
	_, err = c.Submit(t.Context(), &wire.SubmitRequest{Spec: spec})
	require.ErrorContains(t, err, "upload it first")

	for name, u := range map[string]struct {
		data []byte
		says []string
	}{
		"no program of ours": {foreignExecutable(t), []string{"code 0", "it is no Superstep program"}},
		"damaged":            {damaged(t, path), []string{"killed by signal", "it is damaged"}},
	} {
		t.Run(name, func(t *testing.T) {
			hash := sha256Of(u.data)
			require.NoError(t, uploadBytes(t, c, hash, int64(len(u.data)), u.data))
			info, shown := s.submitted(t, c, validSpec(t, hash))
			require.Equal(t, wire.JobFailed, info.State)
			says(t, shown, append(u.says, "tm")...)
		})
	}
	stray, err := filepath.Glob(filepath.Join(s.dir, "jm", "*", "*.part"))
	require.NoError(t, err)
	require.Empty(t, stray)
}

// foreignExecutable returns an executable that is not a program of this module.
func foreignExecutable(t *testing.T) []byte {
	t.Helper()
	path, err := exec.LookPath("true")
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// damaged returns the bytes of a program whose code at the entry point was overwritten, as a
// bad disk may do before the program is hashed.
func damaged(t *testing.T, path string) []byte {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Vaddr <= f.Entry && f.Entry < p.Vaddr+p.Filesz {
			clear(data[p.Off+f.Entry-p.Vaddr:][:64])
		}
	}
	return data
}

// duplicateTaskManagers starts a task manager with the directory of a running task manager, and
// a task manager with the same identity in another directory.
func duplicateTaskManagers(t *testing.T, s *testCluster) {
	again := s.taskManager("tm0")
	got := within(t, waitLimit, again)
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, "another task manager uses it", "give this one a directory of its own")

	id, err := os.ReadFile(filepath.Join(s.dir, "tm0", "id"))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "twin"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "twin", "id"), id, 0o600))
	said := warned(t, s.taskManager("twin"), "no connection to the job manager")
	says(t, said, "two task managers have the identity", "tm0 (process", "twin (process", "give one of them a work directory of its own")
	require.NotContains(t, s.client("nodes").Stdout, "twin")
}
