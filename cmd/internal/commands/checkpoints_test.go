package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/checkpoint/s3store"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/s3test"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestCheckpoints requires that checkpoints are listed while a run holds the lock of the
// directory, and that a damaged one is an error that names it.
func TestCheckpoints(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	code, _, errOut := run(t, nil, "checkpoints", dir)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut, dir)
	store, err := checkpoint.OpenDir(disk.OS(), dir)
	require.NoError(t, err)
	defer store.Close()
	code, out, _ := run(t, nil, "checkpoints", dir)
	require.Zero(t, code)
	require.Equal(t, "there are no checkpoints in "+dir+"\n", out)
	journal, err := checkpoint.Open(t.Context(), store, checkpoint.Run{Job: "j"})
	require.NoError(t, err)
	for step := 1; step <= 2; step++ {
		_, _, err := journal.Write(t.Context(), []checkpoint.State{
			{Queue: "a", Superstep: 10 * step, Pieces: func(yield func([]byte, error) bool) { yield(make([]byte, 100), nil) }},
			{Queue: "b", Superstep: step, Ended: true, Pieces: func(yield func([]byte, error) bool) { yield([]byte("b"), nil) }},
		})
		require.NoError(t, err)
	}
	code, out, _ = run(t, nil, "checkpoints", dir, "--verify")
	require.Zero(t, code)
	require.Regexp(t, `^CHECKPOINT  WRITTEN +SIZE  QUEUE  SUPERSTEP
2           \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S+  \d+ B  a      20
 +b      2, the last
1           \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S+  \d+ B  a      10
 +b      1, the last
$`, out)
	code, out, _ = run(t, nil, "checkpoints", dir, "-o", "json")
	require.Zero(t, code)
	var manifests []checkpoint.Manifest
	require.NoError(t, json.Unmarshal([]byte(out), &manifests))
	require.Len(t, manifests, 2)
	require.Equal(t, 20, manifests[0].Queues[0].Superstep)

	piece := func(step int) string { return fmt.Sprintf("state-00000001-%016x-%d-0", xxh3.HashString("a"), step) }
	require.NoError(t, os.WriteFile(filepath.Join(dir, piece(20)), nil, 0o600))
	code, _, _ = run(t, nil, "checkpoints", dir)
	require.Zero(t, code, "without --verify states are not read")
	code, out, errOut = run(t, nil, "checkpoints", dir, "--verify")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "cannot be used")
	require.Contains(t, errOut, "checkpoint 2 in "+dir+" cannot be used: queue \"a\", superstep 20: "+piece(20)+": it is damaged")
	_, err = os.Stat(filepath.Join(dir, piece(10)))
	require.NoError(t, err)
}

// TestCheckpointsInStores requires that the command reads an S3-compatible store, with the
// environment that it is given, and that it neither takes the lease nor changes an object.
func TestCheckpointsInStores(t *testing.T) {
	server := s3test.New()
	getenv, env := server.Start(t), map[string]string{}
	for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		env[name] = getenv(name)
	}
	store, err := s3store.Open(t.Context(), "s3://bucket/runs/a", s3store.Config{Getenv: getenv, Fail: func(error) {}})
	require.NoError(t, err)
	defer store.Close()
	journal, err := checkpoint.Open(t.Context(), store, checkpoint.Run{Job: "j"})
	require.NoError(t, err)
	_, _, err = journal.Write(t.Context(), []checkpoint.State{{Queue: "a", Superstep: 7, Pieces: func(yield func([]byte, error) bool) { yield([]byte("a"), nil) }}})
	require.NoError(t, err)
	before := server.Objects()
	code, out, errOut := run(t, env, "checkpoints", "s3://bucket/runs/a", "--verify")
	require.Zero(t, code, errOut)
	require.Regexp(t, `(?m)^1 +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S+ +\d+ B +a +7$`, out)
	code, out, _ = run(t, env, "checkpoints", "s3://bucket/runs/b")
	require.Zero(t, code)
	require.Equal(t, "there are no checkpoints in s3://bucket/runs/b\n", out)
	require.Equal(t, before, server.Objects())

	code, _, errOut = run(t, nil, "checkpoints", "s3://bucket/runs/a")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut, "the environment variable AWS_ACCESS_KEY_ID is not set")
	code, _, errOut = run(t, env, "checkpoints", "gs://bucket/runs/a")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, "gs://bucket/runs/a is no place of checkpoints: want a job, a directory or s3://BUCKET/PREFIX")
}

// TestCheckpointsOfAJobOrADirectory requires that an existing directory is a directory, also if
// its name could be that of a job, and that other names without a separator are jobs.
func TestCheckpointsOfAJobOrADirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("ckpt", 0o700))
	code, out, _ := run(t, nil, "checkpoints", "ckpt")
	require.Zero(t, code)
	require.Contains(t, out, "there are no checkpoints in ")
	code, _, errOut := run(t, nil, "checkpoints", "./none")
	require.Equal(t, exitFailed, code)
	require.NotContains(t, errOut, "job")
	code, _, errOut = run(t, nil, "checkpoints", "none", "--token-file", "missing")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut, "missing")
	require.Contains(t, errOut, "(none is taken for a job, as there is no such directory)")
	code, _, errOut = run(t, nil, "checkpoints", "none", "--verify")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, "--verify is for a directory or s3://BUCKET/PREFIX, and there is no directory none")
}

// TestCheckpointsOfAJob requires that the last checkpoints of a job are listed, the newest first,
// and after them why no further ones are written. Nothing in them can control a terminal.
func TestCheckpointsOfAJob(t *testing.T) {
	written := time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local)
	at := func(t time.Time) string { return t.Format(time.RFC3339) }
	pad := strings.Repeat(" ", len(at(written))-len("WRITTEN"))
	text := func(state wire.JobState, c wire.Checkpointed) string {
		var b bytes.Buffer
		require.NoError(t, writeCheckpoints(&b, &wire.JobInfo{ID: "j", State: state, Checkpoints: &wire.JobCheckpoints{Dir: "/shared", Checkpointed: c}}, written.Add(time.Minute)))
		return b.String()
	}
	require.Equal(t, "job j has written 0 checkpoints to /shared\n", text(wire.JobRunning, wire.Checkpointed{}))
	require.Equal(t, `job j has written 12 checkpoints to /shared, 3.5 KiB in 1.5s

CHECKPOINT  WRITTEN`+pad+`  SIZE    TOOK   QUEUE       SUPERSTEP
12          `+at(written)+`  2 KiB   250ms  init        4, the last
                   `+pad+`                 kmeans?[2J  240
                   `+pad+`                 and 7 more
11          `+at(written.Add(-time.Second))+`  1000 B  1.2s   init        4

the last 3 writes failed, since `+at(written.Add(10*time.Second))+` (50s ago): /shared: no space left on device
`, text(wire.JobRunning, wire.Checkpointed{
		Written: 12, Failed: 4, Bytes: 3584, Seconds: 1.5,
		Newest: []wire.WrittenCheckpoint{
			{Number: 11, Written: written.Add(-time.Second), Seconds: 1.2, Bytes: 1000, Queues: []wire.OriginQueue{{Name: "init", Superstep: 4}}},
			{Number: 12, Written: written, Seconds: 0.25, Bytes: 2048, More: 7, Queues: []wire.OriginQueue{{Name: "init", Superstep: 4, Ended: true}, {Name: "kmeans\x1b[2J", Superstep: 240}}},
		},
		Failing: &wire.FailedCheckpoints{Since: written.Add(10 * time.Second), Count: 3, Error: "/shared: no space left\non device"},
	}))
	require.Equal(t, `job j has written 1 checkpoint to /shared, 5 B in 0.0s; they were removed when it had finished
`, text(wire.JobFinished, wire.Checkpointed{Written: 1, Bytes: 5}))
	require.Contains(t, text(wire.JobFailed, wire.Checkpointed{Failing: &wire.FailedCheckpoints{Since: written, Count: 1, Error: "no route"}}),
		"\n\nthe last write failed, since "+at(written)+" (1m0s ago): no route\n")
}
