package engine

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestWorkerStores requires that a worker that cannot open the store of its checkpoints fails, and
// asks for another attempt only if it is to continue the job, as a job that has just been submitted
// should rather be corrected.
func TestWorkerStores(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	used := filepath.Join(t.TempDir(), "used")
	store, err := checkpoint.OpenDir(disk.OS(), used)
	require.NoError(t, err)
	defer store.Close()
	for _, c := range []struct {
		dir, want string
	}{{file, file}, {used, "another run writes its checkpoints into " + used}} {
		for _, resume := range []bool{false, true} {
			spec := specOf(t, squares, squaresArgs{N: 4}, 1)
			spec.Run.Checkpoints = &wire.Checkpoints{Dir: c.dir}
			synctest.Test(t, func(t *testing.T) {
				environment, _ := fakeEnv(&fakePart{})
				h := startWorker(t, environment)
				at := 0
				d := deployment(spec, 0, 1)
				d.Deployment.Resume = resume
				h.say(d)
				require.NotNil(t, h.next(&at).Ready)
				h.say(prepareWord)
				failed := h.next(&at).Failed
				require.NotNil(t, failed)
				require.Contains(t, failed.Message, c.want)
				require.Equal(t, resume, failed.Retry)
				require.Equal(t, exitFailed, h.end())
			})
		}
	}
}

// TestWorkerSaves requires that a worker answers a request for a checkpoint once it runs, that it
// repeats the answer to a repeated request, and that it refuses a request before.
func TestWorkerSaves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	spec.Run.Checkpoints = &wire.Checkpoints{Dir: dir}
	synctest.Test(t, func(t *testing.T) {
		part := &fakePart{block: map[string]chan struct{}{"run": make(chan struct{})}}
		environment, _ := fakeEnv(part)
		h := startWorker(t, environment)
		at := 0
		next := func() *wire.FromWorker { // but progress
			for {
				if m := h.next(&at); m.Progress == nil && m.Checkpointed == nil {
					return m
				}
			}
		}
		h.say(deployment(spec, 0, 1))
		require.NotNil(t, next().Ready)
		h.say(wire.ToWorker{Save: &wire.Save{Request: 1}})
		require.Equal(t, &wire.Saved{Request: 1, Failure: "the worker does not run"}, next().Saved)
		h.say(prepareWord)
		require.Equal(t, &wire.Origin{Generation: 1}, next().Prepared.Origin)
		h.say(startWord)
		for range 2 {
			h.say(wire.ToWorker{Save: &wire.Save{Request: 2, Place: filepath.Join(dir, "..", "savepoint")}})
			saved := next().Saved
			require.NotNil(t, saved)
			require.Empty(t, saved.Failure)
			require.Equal(t, 1, saved.Checkpoint.Number)
		}
		h.say(wire.ToWorker{Save: &wire.Save{Request: 3, Place: "gs://bucket/savepoint"}})
		require.Equal(t, `the place "gs://bucket/savepoint" of the savepoint is neither an absolute path nor s3://BUCKET/PREFIX`, next().Saved.Failure)
		written, err := filepath.Glob(filepath.Join(dir, "checkpoint-*"))
		require.NoError(t, err)
		require.Len(t, written, 1, "nothing is written for a savepoint that is refused")
		found, err := filepath.Glob(filepath.Join(dir, "..", "savepoint", "checkpoint-*"))
		require.NoError(t, err)
		require.Len(t, found, 1)
		close(part.block["run"])
		require.NotNil(t, next().Finished)
		h.say(commitWord)
		require.NotNil(t, next().Committed)
		h.say(exitWord)
		require.Equal(t, exitOK, h.end())
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "the checkpoints must be removed after the commit")
	})
}

// TestWorkerTellsOfUnwrittenParts requires that a worker other than worker 0 says which part of a checkpoint
// it could not write, and why.
func TestWorkerTellsOfUnwrittenParts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	store, err := checkpoint.OpenDir(disk.OS(), dir)
	require.NoError(t, err)
	spec := specOf(t, squares, squaresArgs{N: 4}, 2)
	spec.Run.Checkpoints = &wire.Checkpoints{Dir: dir}
	d := deployment(spec, 1, 2)
	journal, err := checkpoint.Open(t.Context(), store, checkpoint.Run{})
	require.NoError(t, err)
	require.NoError(t, journal.Announce(t.Context(), (&checkpointed{job: d.Deployment.Job, attempt: d.Deployment.Attempt}).key()))
	require.NoError(t, store.Close())
	synctest.Test(t, func(t *testing.T) {
		part := &fakePart{block: map[string]chan struct{}{"run": make(chan struct{})}}
		environment, _ := fakeEnv(part)
		var states task.Checkpointer
		environment.part = func(c partConfig) (subtasks, error) {
			states = c.env.Checkpoints
			return part.make(c)
		}
		h := startWorker(t, environment)
		at := 0
		h.say(d)
		require.NotNil(t, h.next(&at).Ready)
		h.say(wire.ToWorker{Start: &wire.Start{Addresses: []string{"w:1", "w:2"}, Origin: &wire.Origin{Generation: journal.Generation()}}})
		synctest.Wait()
		require.NoError(t, os.RemoveAll(dir))
		state := partAt(1, 7, false)
		state.Purposes = task.Durable
		states.Save("q", state)
		var told *wire.Checkpointed
		for told == nil {
			told = h.next(&at).Checkpointed
		}
		require.Equal(t, []wire.OriginQueue{{Name: "q", Superstep: 7}}, told.Unwritten)
		require.Equal(t, 1, told.Failing.Count)
		require.Contains(t, told.Failing.Error, `write a checkpoint of queue "q" after superstep 7 to `+dir)
		require.Zero(t, told.Failed, "worker 0 counts the failure")
		h.say(wire.ToWorker{Cancel: &wire.Cancel{Reason: "enough"}})
		for h.next(&at).Failed == nil {
		}
		require.Equal(t, exitFailed, h.end())
	})
}

// TestWorkerOfAnEmptiedDirectory requires that a worker whose checkpoints were removed while it runs, but not
// their directory, asks for another attempt, also in the first attempt, and does not say that one is there.
func TestWorkerOfAnEmptiedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	spec.Run.Checkpoints = &wire.Checkpoints{Dir: dir}
	synctest.Test(t, func(t *testing.T) {
		part := &fakePart{block: map[string]chan struct{}{"run": make(chan struct{})}}
		environment, _ := fakeEnv(part)
		h := startWorker(t, environment)
		at := 0
		h.say(deployment(spec, 0, 1))
		require.NotNil(t, h.next(&at).Ready)
		h.say(prepareWord)
		require.NotNil(t, h.next(&at).Prepared)
		h.say(startWord)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, f := range files {
			require.NoError(t, os.Remove(filepath.Join(dir, f.Name())))
		}
		h.say(wire.ToWorker{Save: &wire.Save{Request: 1}})
		for {
			m := h.next(&at)
			if m.Failed == nil {
				continue
			}
			require.Contains(t, m.Failed.Message, "the files of the checkpoints were removed while the job ran")
			require.True(t, m.Failed.Retry)
			require.Equal(t, wire.ClusterFailure, m.Failed.Kind)
			break
		}
		require.Equal(t, exitFailed, h.end())
	})
}
