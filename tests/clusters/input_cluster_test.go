//go:build linux && !race

package clusters

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/superstep-ml/superstep/internal/client"
	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// testCluster is a cluster of processes that must survive bad input.
type testCluster struct {
	*processCluster
	http  string // URL of the job manager; "" without HTTP
	plain string // output of the job without faults
	tls   string // directory of the certificates; "" without TLS
}

// clusterOptions has the options of startCluster.
type clusterOptions struct {
	taskManagers, slots int
	tls                 bool
	manager             []string // further flags of the job manager
}

var httpLine = regexp.MustCompile(`(?m)^HTTP at (\S+)$`)

// startCluster starts a job manager, with HTTP, and task managers.
func startCluster(t testing.TB, o clusterOptions) *testCluster {
	t.Helper()
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	s := &testCluster{processCluster: &processCluster{
		t: t, dir: dir, output: new(transcript), slots: o.slots,
		environ: []string{"SUPERSTEP_TOKEN_FILE=" + token}, tasks: make([]*proctest.Cmd, o.taskManagers),
	}}
	args := append([]string{"jobmanager", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
		"--dir", filepath.Join(dir, "jm"), "--token-file", token, "--log-level", "info"}, o.manager...)
	if o.tls {
		s.tls = filepath.Join(dir, "tls")
		made := programs.Execute(t, nil, programs.Build(t, "./cmd/superstep"), "tls", "init", s.tls)
		require.Zero(t, made.Code, made.Stderr)
		args = append(args, s.certificates("jobmanager")...)
	}
	t.Cleanup(s.end)
	s.manager = proctest.Command(programs.Build(t, "./cmd/superstep"), args...)
	said := new(transcript)
	s.manager.Stdout, s.manager.Stderr = said, s.output
	require.NoError(t, s.manager.Start())
	require.Eventually(t, func() bool {
		at, web := managerLine.FindStringSubmatch(said.String()), httpLine.FindStringSubmatch(said.String())
		if at != nil && web != nil {
			s.address, s.http = at[1], web[1]
		}
		return at != nil && web != nil
	}, waitLimit, 10*time.Millisecond, "the job manager did not come up: %s", s.output)
	for i := range s.tasks {
		s.tasks[i] = s.taskManager(fmt.Sprintf("tm%d", i))
		require.NoError(t, s.tasks[i].Start())
	}
	if len(s.tasks) > 0 {
		s.requireFree()
		got := programs.Execute(t, nil, programs.Build(t, "./tests/clusterjobs"), "--progress", "off")
		require.Zero(t, got.Code, got.Stderr)
		s.plain = got.Stdout
	}
	return s
}

// taskManager returns the command that runs a task manager with the given name, in a separate
// work directory.
func (s *testCluster) taskManager(name string, more ...string) *proctest.Cmd {
	args := programs.With([]string{"taskmanager", "--jobmanager", s.address, "--name", name, "--slots", strconv.Itoa(s.slots),
		"--memory", "1GiB", "--dir", filepath.Join(s.dir, name), "--token-file", filepath.Join(s.dir, "token"), "--log-level", "info"}, more...)
	cmd := proctest.Command(programs.Build(s.t, "./cmd/superstep"), append(args, s.certificates("taskmanager")...)...)
	cmd.Stdout, cmd.Stderr = s.output, s.output
	return cmd
}

// certificates returns the flags that name a role's certificates, or none without TLS.
func (s *testCluster) certificates(role string) []string {
	if s.tls == "" {
		return nil
	}
	return []string{"--tls-ca", filepath.Join(s.tls, "ca.pem"), "--tls-cert", filepath.Join(s.tls, role+".pem"), "--tls-key", filepath.Join(s.tls, role+"-key.pem")}
}

// end stops all processes of the cluster.
func (s *testCluster) end() {
	for _, p := range append(s.tasks, s.manager) {
		if p != nil && p.Process != nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	}
	if s.t.Failed() {
		s.t.Logf("output of the cluster:\n%s", s.output)
	}
}

// with returns the same cluster with clients that use the certificates in the directory tls. If
// tls is "", they use no certificates.
func (s *testCluster) with(tls string) *testCluster {
	return &testCluster{processCluster: s.processCluster, http: s.http, plain: s.plain, tls: tls}
}

// run runs the program clusterjobs on the cluster and waits until it has ended.
func (s *testCluster) run(more ...string) programs.Outcome {
	args := append([]string{"--cluster", s.address, "--progress", "off"}, s.certificates("client")...)
	return programs.Execute(s.t, s.environ, programs.Build(s.t, "./tests/clusterjobs"), programs.With(args, more...)...)
}

// client runs a client command and waits until it has ended.
func (s *testCluster) client(args ...string) programs.Outcome {
	return s.processCluster.client(append(args, s.certificates("client")...)...)
}

// requireFree waits until the cluster has all its slots and all of them are free.
func (s *testCluster) requireFree() {
	s.t.Helper()
	requireFreeSlots(s.t, s.options(), len(s.tasks)*s.slots, s.output)
}

// options returns the options with which clients in this process connect to the cluster.
func (s *testCluster) options() client.Options {
	o := s.processCluster.options()
	if s.tls != "" {
		o.TLS = security.TLSFiles{CA: filepath.Join(s.tls, "ca.pem"), Cert: filepath.Join(s.tls, "client.pem"), Key: filepath.Join(s.tls, "client-key.pem")}
	}
	return o
}

// requireIntact requires that every process of the cluster still runs, that all slots are free,
// and that the next job gives the same bits as the first job.
func (s *testCluster) requireIntact(t testing.TB) {
	t.Helper()
	for _, p := range append(s.tasks, s.manager) {
		require.False(t, gone(p.Process.Pid), "%s must still run: %s", p, s.output)
	}
	s.requireFree()
	got := s.run("--parallelism", strconv.Itoa(len(s.tasks)*s.slots))
	require.Zero(t, got.Code, got.Stderr)
	require.Equal(t, s.plain, got.Stdout)
}

// dial returns a client that is connected to the job manager.
func (s *testCluster) dial(t testing.TB) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	c, err := client.Dial(ctx, s.options())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// jobArgs has the arguments of the program clusterjobs, with the field names that they have
// when they are encoded.
type jobArgs struct {
	Rows  int64
	Steps int
	Fault string
	At    int
	By    int
}

// validSpec returns a valid submission that tests modify.
func validSpec(t testing.TB, hash string) wire.JobSpec {
	t.Helper()
	args, err := msgpack.Marshal(jobArgs{Rows: 100, Steps: 3, Fault: "none"})
	require.NoError(t, err)
	return wire.JobSpec{
		Name: "clusterjobs", Args: args, Parallelism: 2, Shards: 128, Artifact: hash, Version: wire.Version,
		Platform: wire.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH},
	}
}

// submitted submits a job, waits until it has ended, and returns its description.
func (s *testCluster) submitted(t testing.TB, c *client.Client, spec wire.JobSpec) (info *wire.JobInfo, shown string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	reply, err := c.Submit(ctx, &wire.SubmitRequest{Spec: spec})
	require.NoError(t, err)
	_, err = c.FollowToEnd(ctx, reply.Job, false, nil)
	require.NoError(t, err)
	info, err = c.Show(ctx, &wire.ShowRequest{Job: reply.Job})
	require.NoError(t, err)
	got := s.client("show", string(reply.Job))
	require.Zero(t, got.Code, got.Stderr)
	return info, got.Stdout
}

// uploadBytes sends bytes as an executable with a given hash and size, which may be wrong.
func uploadBytes(t testing.TB, c *client.Client, hash string, size int64, data []byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	stream, err := c.UploadArtifact(ctx)
	require.NoError(t, err)
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), 256<<10)
		chunk := &wire.Chunk{Data: data[:n]}
		if first {
			chunk.Hash, chunk.Size = hash, size
		}
		if err := stream.Send(chunk); errors.Is(err, io.EOF) {
			break // CloseAndRecv returns the reason
		} else {
			require.NoError(t, err)
		}
		data = data[n:]
	}
	_, err = stream.CloseAndRecv()
	return err
}

// sha256Of returns the SHA-256 of data in hex, which identifies an executable.
func sha256Of(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// within runs a command and requires that it ends by itself within limit.
func within(t testing.TB, limit time.Duration, cmd *proctest.Cmd, environ ...string) programs.Outcome {
	t.Helper()
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.Env = append(os.Environ(), environ...)
	require.NoError(t, cmd.Start())
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait()
	require.NotEqual(t, -1, cmd.ProcessState.ExitCode(), "%s must end within %v: %s", cmd, limit, said.String())
	return programs.Outcome{Code: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: said.String()}
}

// says requires that a text contains all of the given words.
func says(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		require.True(t, strings.Contains(text, w), "%q must be in:\n%s", w, text)
	}
}
