package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// deployTo deploys a job to a worker with a fake part and returns its answer.
func deployTo(t *testing.T, environment workerEnv, m wire.ToWorker) (*wire.FromWorker, int) {
	t.Helper()
	h := startWorker(t, environment)
	at := 0
	h.say(m)
	answer := h.next(&at)
	h.say(exitWord)
	code := h.end()
	require.Empty(t, h.exited())
	return answer, code
}

// cubes is a job whose name a worker may suggest when a job is unknown.
var cubes = Define("cubes", func(b *Builder, a squaresArgs) error { return errors.New("not to be built") })

func TestWorkerMisuse(t *testing.T) {
	good := specOf(t, squares, squaresArgs{N: 4}, 1)
	type other struct{ N, M int }
	for _, test := range []struct {
		name   string
		change func(d *wire.Deployment)
		jobs   []Runnable
		kind   wire.FailureKind
		want   string
	}{
		{name: "unknown name", change: func(d *wire.Deployment) { d.Spec.Name = "cube" }, kind: wire.MisuseFailure,
			want: `the program has no job "cube" (it has: cubes, squares); did you mean "cubes"?`},
		{name: "no jobs", jobs: []Runnable{nil}, kind: wire.MisuseFailure, want: `the program has no job "squares" (it has: none)`},
		{name: "a name twice", jobs: []Runnable{squares, cubes, squares}, kind: wire.MisuseFailure,
			want: `the program has two jobs named "squares": give each a name of its own in engine.Define`},
		{name: "arguments of another type", change: func(d *wire.Deployment) {
			data, err := encodeArgs(other{1, 2})
			require.NoError(t, err)
			d.Spec.Args = data
		}, kind: wire.MisuseFailure, want: `the arguments do not decode into *engine.squaresArgs: msgpack: unknown field "M"`},
		{name: "arguments cut", change: func(d *wire.Deployment) { d.Spec.Args = d.Spec.Args[:3] }, kind: wire.MisuseFailure,
			want: `the arguments do not decode into *engine.squaresArgs: `},
		{name: "no graph", change: func(d *wire.Deployment) { d.Spec.Graph = nil }, kind: wire.MisuseFailure, want: "plan: read graph: EOF"},
		{name: "another graph", change: func(d *wire.Deployment) {
			d.Spec.Graph = []byte(strings.ReplaceAll(string(d.Spec.Graph), `"4"`, `"5"`))
		}, kind: wire.MisuseFailure,
			want: "the worker's program builds another graph from the same arguments than the client's (likely causes: a --worker-binary of other sources, or a job function that depends on more than its arguments, such as the environment or the machine):\nthe graphs first differ at node 0 Numbers (kit_test.go:"},
		{name: "another seed", change: func(d *wire.Deployment) { d.Spec.Seed = 5 }, kind: wire.MisuseFailure, want: "the worker's program builds another graph"},
		{name: "a job that does not build", change: func(d *wire.Deployment) { d.Spec.Name = "cubes" }, kind: wire.MisuseFailure, want: "not to be built"},
		{name: "shards", change: func(d *wire.Deployment) { d.Spec.Shards = 3 }, kind: wire.MisuseFailure, want: "--shards is 3: want a power of two"},
		{name: "if exists", change: func(d *wire.Deployment) { d.Spec.Run.IfExists = "append" }, kind: wire.MisuseFailure, want: `--if-exists is "append": want fail or replace`},
		{name: "batch rows", change: func(d *wire.Deployment) { d.Spec.Run.BatchRows = -1 }, kind: wire.MisuseFailure, want: "--batch-rows is -1: want at least 1"},
		{name: "worker", change: func(d *wire.Deployment) { d.Worker = 1 }, kind: wire.ClusterFailure, want: "the deployment is for worker 1 of 1"},
		{name: "attempt", change: func(d *wire.Deployment) { d.Attempt = 0 }, kind: wire.ClusterFailure, want: "the deployment has attempt 0 and 67108864 bytes of memory"},
		{name: "slots", change: func(d *wire.Deployment) { d.Slots[0].Hi = 0 }, kind: wire.ClusterFailure, want: "the deployment gives worker 0 the slots 0 to -1, after 0 others"},
		{name: "mode", change: func(d *wire.Deployment) { d.Mode = 7 }, kind: wire.ClusterFailure, want: "the deployment has mode 7, which this version does not know"},
		{name: "credential", change: func(d *wire.Deployment) { d.Credential.Certificate = "no PEM" }, kind: wire.ClusterFailure, want: "the credential of the attempt cannot be used: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment, _ := fakeEnv(&fakePart{})
			environment.jobs = []Runnable{squares, cubes}
			if test.jobs != nil {
				environment.jobs = test.jobs
			}
			m := deployment(good, 0, 1)
			if test.change != nil {
				test.change(m.Deployment)
			}
			answer, code := deployTo(t, environment, m)
			require.Equal(t, exitFailed, code)
			require.NotNil(t, answer.Failed)
			require.Equal(t, test.kind, answer.Failed.Kind, answer.Failed.Message)
			require.True(t, strings.HasPrefix(answer.Failed.Message, test.want), answer.Failed.Message)
			require.Equal(t, m.Deployment.Worker, answer.Failed.Worker)
			require.Equal(t, "host0", answer.Failed.TaskManager)
		})
	}
}

// TestWorkerConfig requires that the options of the run reach the worker.
func TestWorkerConfig(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1, Seed(7))
	spec.Run = wire.RunOptions{BatchRows: 5, Memory: 1 << 20, IfExists: "replace"}
	part := &fakePart{}
	environment, _ := fakeEnv(part)
	m := deployment(spec, 0, 1)
	m.Deployment.Slots[0].Hi = 3
	m.Deployment.WorkDir = t.TempDir()
	answer, code := deployTo(t, environment, m)
	require.NotNil(t, answer.Ready)
	require.Equal(t, exitOK, code)
	env := part.env.env
	require.Equal(t, 5, env.BatchRows)
	require.Equal(t, int64(3<<20), env.MemoryBudget, "the worker must add up the budgets of its slots")
	require.Equal(t, m.Deployment.WorkDir, env.SpillDir)
	require.Equal(t, uint64(7), part.env.plan.Seed)
	require.Equal(t, environment.stopTimeout, env.AbandonAfter)
}

// checkingJob is a job that can be built only if CheckState and CheckBroadcasts are on.
var checkingJob = Define("watchful", func(b *Builder, _ struct{}) error {
	if !b.CheckState() || !b.CheckBroadcasts() {
		return fmt.Errorf("checks of state %t, of broadcasts %t", b.CheckState(), b.CheckBroadcasts())
	}
	return squares.build(b, squaresArgs{N: 4})
})

// TestWorkersCheckQueues requires that CheckState and CheckBroadcasts also reach the workers of
// a cluster.
// TestWorkersHaveTheClientsCheckpoints requires that workers have those settings of checkpoints that
// the client has, and that a job manager takes them.
func TestWorkersHaveTheClientsCheckpoints(t *testing.T) {
	for _, opts := range [][]Option{
		{CheckpointDir("/shared")},
		{CheckpointDir("s3://bucket/x"), CheckpointEvery(time.Minute), Resume(true)},
		{CheckpointDir("/shared"), CheckpointSupersteps(3), CheckpointFailAfter(time.Hour)},
		{CheckpointDir("/shared"), CheckpointAuto(DefaultMTBF)},
		{CheckpointDir("/shared"), RequireCheckpoints(true)},
	} {
		c, err := newConfig(opts)
		require.NoError(t, err)
		spec := wire.JobSpec{Parallelism: 1, Shards: 8}
		spec.Run.Checkpoints, err = c.checkpoints.wire()
		require.NoError(t, err)
		require.NoError(t, spec.Run.Checkpoints.Check())
		spec.Run.RequireCheckpoints = c.checkpoints.require
		environment, _ := fakeEnv(&fakePart{})
		j := newWorkerJob(&worker{workerProcess: &workerProcess{env: environment}}, deployment(spec, 0, 1).Deployment)
		got, err := j.config()
		require.NoError(t, err)
		require.Equal(t, c.checkpoints, got.checkpoints)
	}
}

func TestWorkersCheckQueues(t *testing.T) {
	for i := range 4 {
		spec := specOf(t, checkingJob, struct{}{}, 1, CheckState(true), CheckBroadcasts(true))
		spec.Run.CheckState, spec.Run.CheckBroadcasts = i&1 == 1, i&2 == 2
		environment, _ := fakeEnv(&fakePart{})
		environment.jobs = []Runnable{checkingJob}
		m := deployment(spec, 0, 1)
		m.Deployment.WorkDir = t.TempDir()
		answer, _ := deployTo(t, environment, m)
		require.Equal(t, i == 3, answer.Ready != nil, "%v", answer.Failed)
	}
}

// filesArgs are the arguments of the job files.
type filesArgs struct{ Path string }

// files is a job that depends on a fact about a file.
var files = Define("files", func(b *Builder, a filesArgs) error {
	size, err := b.Fact("size of "+a.Path, func() (string, error) {
		info, err := os.Stat(a.Path)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(info.Size()), nil
	})
	if err != nil {
		b.Errorf("Files: %w", err)
		return nil
	}
	n := 0
	fmt.Sscan(size, &n)
	Collect(numbers(b, n), "numbers")
	return nil
})

// nondeterministicJob is a job whose graph is different in each build.
func nondeterministicJob() *Job[struct{}] {
	n := 0
	return Define("drifting", func(b *Builder, _ struct{}) error {
		n++
		Collect(numbers(b, n), "numbers")
		return nil
	})
}

func resolve(spec wire.JobSpec) wire.ToWorker {
	return wire.ToWorker{Deployment: &wire.Deployment{
		WorkerRef: wire.WorkerRef{Job: "j", Attempt: 1}, Mode: wire.ResolveMode, Spec: spec, TaskManager: "host0",
	}}
}

// TestWorkerResolves requires that a worker resolves the facts that the client cannot resolve.
func TestWorkerResolves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "input")
	require.NoError(t, os.WriteFile(path, []byte("12345"), 0o600))
	args, err := encodeArgs(filesArgs{path})
	require.NoError(t, err)
	spec := wire.JobSpec{Name: "files", Args: args, Shards: 16}
	environment := workerEnv{jobs: []Runnable{files}}

	answer, code := deployTo(t, environment, resolve(spec))
	require.Equal(t, exitOK, code)
	require.NotNil(t, answer.Resolved, answer)
	graph, err := plan.DecodeGraph(answer.Resolved.Graph)
	require.NoError(t, err)
	want, err := BuildGraph(files, filesArgs{path}, Shards(16))
	require.NoError(t, err)
	require.Equal(t, want.Fingerprint(), graph.Fingerprint())

	require.NoError(t, os.Remove(path))
	answer, code = deployTo(t, environment, resolve(spec))
	require.Equal(t, exitFailed, code)
	require.Equal(t, wire.MisuseFailure, answer.Failed.Kind)
	require.Contains(t, answer.Failed.Message, "on task manager host0, which was asked because the client cannot see the inputs: worker_job_test.go:")
	require.Contains(t, answer.Failed.Message, "stat "+path+": no such file or directory (paths of a job are those of its workers, here of task manager host0)")

	spec.Name = "drifting"
	answer, _ = deployTo(t, workerEnv{jobs: []Runnable{nondeterministicJob()}}, resolve(wire.JobSpec{Name: "drifting", Args: []byte{0x80}, Shards: 16}))
	require.Contains(t, answer.Failed.Message, "drifting\" builds differently each time")
}

// TestWorkerDirectory requires that relative paths are relative to the client's directory. If
// the worker has no such directory, they must be refused, because they would name another file.
func TestWorkerDirectory(t *testing.T) {
	home, err := os.Getwd()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.Chdir(home)) })
	dir, scratch := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "input"), []byte("123"), 0o600))
	args, err := encodeArgs(filesArgs{"input"})
	require.NoError(t, err)
	spec := wire.JobSpec{Name: "files", Args: args, Shards: 16, Dir: dir}
	environment := workerEnv{jobs: []Runnable{files}, enter: enterDir}

	answer, _ := deployTo(t, environment, resolve(spec))
	require.NotNil(t, answer.Resolved, answer)

	require.NoError(t, os.Chdir(home))
	spec.Dir = filepath.Join(dir, "gone")
	m := resolve(spec)
	m.Deployment.WorkDir = scratch
	answer, _ = deployTo(t, environment, m)
	require.Contains(t, answer.Failed.Message, "stat input: no such file or directory (paths of a job are those of its workers, here of task manager host0; "+
		"relative ones are within the directory that the job was submitted in, "+spec.Dir+", which is not there: no such file or directory)")
	require.Error(t, os.WriteFile("output", nil, 0o600), "a relative path must not name a file in another directory")
	require.Error(t, os.MkdirAll("output/parts", 0o700))
	left, err := os.ReadDir(scratch)
	require.NoError(t, err)
	require.Empty(t, left)

	// An absolute path still works.
	spec.Args, err = encodeArgs(filesArgs{filepath.Join(dir, "input")})
	require.NoError(t, err)
	require.NoError(t, os.Chdir(home))
	m = resolve(spec)
	m.Deployment.WorkDir = scratch
	answer, _ = deployTo(t, environment, m)
	require.NotNil(t, answer.Resolved, answer)

	_, err = enterDir(spec.Dir, filepath.Join(dir, "input"))
	require.ErrorContains(t, err, "make a directory")
}

func TestPathHints(t *testing.T) {
	gone := errors.New("no such file")
	d := &wire.Deployment{TaskManager: "host3", Spec: wire.JobSpec{Dir: "/home/u"}}
	here := " (paths of a job are those of its workers, here of task manager host3)"
	nowhere := " (paths of a job are those of its workers, here of task manager host3; relative ones are within the directory that the job was submitted in, /home/u, which is not there: no such file)"
	for _, test := range []struct {
		err          error
		there, noDir string
	}{
		{errors.New("divided by zero"), "", ""},
		{&fs.PathError{Op: "write", Path: "/x", Err: errors.New("no space")}, "", ""},
		{fmt.Errorf("read: %w", &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}), here, here},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, here, nowhere},
		{&os.LinkError{Op: "rename", Old: "x", New: "y", Err: fs.ErrNotExist}, here, nowhere},
		{fs.ErrNotExist, "", ""},
		{&LocalPathError{Path: "x", Err: errors.New("changed")}, here, nowhere},
		{&LocalPathError{Path: "/x", Err: errors.New("changed")}, here, here},
		{&LocalPathError{Err: &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}}, here, here},
		{&LocalPathError{Err: errors.New("exists")}, here, nowhere},
	} {
		require.Equal(t, test.there, (&workerJob{deployment: d}).pathHint(test.err), "%v", test.err)
		require.Equal(t, test.noDir, (&workerJob{deployment: d, noDir: &fs.PathError{Op: "chdir", Path: "/home/u", Err: gone}}).pathHint(test.err), "%v", test.err)
	}
}

func TestClipMessage(t *testing.T) {
	require.Equal(t, "a\uFFFDb", clipMessage("a\xffb"))
	long := clipMessage(strings.Repeat("é", maxFailure))
	require.Len(t, long, maxFailure+len(" …"))
	require.True(t, strings.HasSuffix(long, "é …"))
	require.Len(t, clipMessage("x"+strings.Repeat("é", maxFailure)), maxFailure-1+len(" …"))
}
