package engine

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/wire"
)

// prepareFrom makes worker 0 of a job prepare an attempt, where the workers hold the given states.
func (j *workerJob) prepareFrom(t *testing.T, states ...copies.State) (*wire.Origin, error) {
	j.worker.prepare = &wire.Prepare{Held: inMemory(t, states...)}
	outcome := j.prepare(t.Context())
	if outcome.err != nil {
		return nil, outcome.err
	}
	return outcome.answer.Prepared.Origin, nil
}

// damageAll damages all files of a directory whose names begin with a prefix.
func damageAll(t *testing.T, dir, prefix string) {
	paths, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		require.NoError(t, os.WriteFile(path, []byte("other bytes"), 0o600))
	}
}

// TestDamagedCheckpointsOfALaterAttempt requires that an attempt whose workers hold states of all queues that may be
// in damaged checkpoints continues from memory, and replaces these checkpoints by its own. If it is the first
// attempt, or if a state is lost, the damage is an error and not retried, as it stays.
func TestDamagedCheckpointsOfALaterAttempt(t *testing.T) {
	a, b := copies.State{Queue: "a", Superstep: 20, Of: 2}, copies.State{Queue: "b", Superstep: 7, Ended: true, Of: 2}
	for _, prefix := range []string{"checkpoint", "state"} {
		dir := t.TempDir()
		continuedJob(t, dir, "a", "b", "new").checkpoints.write(t, savedOfOne(12, false), savedOfOne(7, true))
		damageAll(t, dir, prefix)

		j := continuedJob(t, dir, "a", "b", "new")
		_, err := j.prepareFrom(t, a)
		require.ErrorContains(t, err, "no checkpoint in "+dir+" can be used", "the state of queue b is lost")
		require.False(t, j.worker.retries(j, err))
		j = continuedJob(t, dir, "a", "b", "new")
		j.deployment.Resume = false
		_, err = j.prepareFrom(t, a, b)
		require.ErrorContains(t, err, "no checkpoint in "+dir+" can be used")

		j = continuedJob(t, dir, "a", "b", "new")
		from, err := j.prepareFrom(t, a, b)
		require.NoError(t, err)
		require.Zero(t, from.Number)
		require.Equal(t, []wire.OriginQueue{
			{Name: "a", Superstep: 20, InMemory: true}, {Name: "b", Superstep: 7, Ended: true, InMemory: true},
		}, from.Queues)
		written := make(chan *checkpoint.Manifest, 1)
		require.NoError(t, j.checkpoints.saveNow("", func(m *checkpoint.Manifest, err error) {
			require.NoError(t, err)
			written <- m
		}))
		j.checkpoints.Save("a", savedOfOne(21, false))
		require.Equal(t, []wire.OriginQueue{{Name: "a", Superstep: 21}}, queuesOf(<-written))
		j.closeCheckpoints(endLeft)

		from, err = continuedJob(t, dir, "a", "b", "new").prepareFrom(t)
		require.NoError(t, err)
		require.Equal(t, []wire.OriginQueue{{Name: "a", Superstep: 21}}, from.Queues)
	}
}

// retries reports whether the failure of a worker says that another attempt may succeed.
func (w *worker) retries(j *workerJob, err error) (retry bool) {
	w.job = j
	return w.failureOf(err).Retry
}

// brokenDisk is a file system that cannot read some files.
type brokenDisk struct {
	disk.FS
	fails string // part of the names of these files
}

func (d *brokenDisk) OpenFile(name string, flag int, perm os.FileMode) (disk.File, error) {
	if strings.Contains(filepath.Base(name), d.fails) {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EIO}
	}
	return d.FS.OpenFile(name, flag, perm)
}

// TestUnreadableCheckpointsAreRetried requires that an attempt that cannot read the newest checkpoint neither continues
// from the one before nor gives the checkpoints up: another attempt may read it.
func TestUnreadableCheckpointsAreRetried(t *testing.T) {
	dir := t.TempDir()
	for step := 11; step <= 12; step++ {
		continuedJob(t, dir, "a").checkpoints.write(t, savedOfOne(step, false))
	}
	for _, held := range [][]copies.State{nil, {{Queue: "a", Superstep: 5, Of: 2}}} {
		j := continuedJob(t, dir, "a")
		j.checkpoints.config.disk = &brokenDisk{disk.OS(), "checkpoint-00000002"}
		_, err := j.prepareFrom(t, held...)
		require.ErrorIs(t, err, syscall.EIO)
		require.ErrorContains(t, err, "checkpoint-00000002 in "+dir+": it cannot be read")
		require.True(t, j.worker.retries(j, err))
	}
	from, err := continuedJob(t, dir, "a").prepareFrom(t)
	require.NoError(t, err)
	require.Equal(t, []wire.OriginQueue{{Name: "a", Superstep: 12}}, from.Queues)
}
