package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/internal/wire"
)

// savepointOf makes a savepoint of the first queues of a job, and returns its place.
func savepointOf(t *testing.T, queues ...string) string {
	place := filepath.Join(t.TempDir(), "savepoint")
	continuedJob(t, place, queues...).checkpoints.write(t, savedOfOne(490, false), savedOfOne(7, true))
	return place
}

// continuedFrom returns a job as continuedJob does, which began with a savepoint.
func continuedFrom(t *testing.T, place, dir string, queues ...string) *workerJob {
	j := continuedJob(t, dir, queues...)
	j.checkpoints.config.checkpoints.savepoint = place
	return j
}

// TestSavepointIsNeededOnce requires that a job with durable checkpoints continues from what was in a savepoint when
// the savepoint is gone, with the states of queues that have ended, and before any queue has done a superstep.
func TestSavepointIsNeededOnce(t *testing.T) {
	queues, dir := []string{"a", "b", "new"}, t.TempDir()
	place := savepointOf(t, queues...)
	states := []wire.OriginQueue{{Name: "a", Superstep: 490}, {Name: "b", Superstep: 7, Ended: true}}
	first := continuedFrom(t, place, dir, queues...)
	first.deployment.Resume, first.checkpoints.config.checkpoints.resume = false, false
	from, err := first.prepareFrom(t)
	require.NoError(t, err)
	require.Equal(t, 1, from.Savepoint)
	require.Equal(t, states, from.Queues)
	first.closeCheckpoints(endLeft)
	require.NoError(t, os.RemoveAll(place))

	second := continuedFrom(t, place, dir, queues...)
	from, err = second.prepareFrom(t)
	require.NoError(t, err)
	require.Zero(t, from.Savepoint)
	require.Equal(t, states, from.Queues)
	require.Equal(t, []int{490, 7}, []int{second.checkpoints.From("a").Step, second.checkpoints.From("b").Step})
	states[0].Superstep = 491
	second.checkpoints.Save("a", savedOfOne(491, false))
	second.closeCheckpoints(endFailed)

	from, err = continuedFrom(t, place, dir, queues...).prepareFrom(t)
	require.NoError(t, err)
	require.Equal(t, states, from.Queues)
}

// TestSavepointOfJobsInMemory requires that a job without durable checkpoints continues without its savepoint if each
// queue has a state in memory. Otherwise the error says which has none, and another attempt is made, as
// the savepoint may be back then.
func TestSavepointOfJobsInMemory(t *testing.T) {
	place := savepointOf(t, "a", "b")
	a, b := copies.State{Queue: "a", Superstep: 495, Of: 2}, copies.State{Queue: "b", Superstep: 7, Ended: true, Of: 2}
	from, err := continuedFrom(t, place, "", "a", "b").prepareFrom(t, a)
	require.NoError(t, err)
	require.Equal(t, []wire.OriginQueue{{Name: "a", Superstep: 495, InMemory: true}, {Name: "b", Superstep: 7, Ended: true}}, from.Queues)

	refused := func(j *workerJob, retried bool) error {
		_, err := j.prepareFrom(t, a)
		require.Error(t, err)
		require.Equal(t, retried, j.worker.retries(j, err))
		return err
	}
	need := "--from: the savepoint " + place + ` is needed, as there is no newer state of queue "b", and it cannot be used`
	damageAll(t, place, "checkpoint")
	require.ErrorContains(t, refused(continuedFrom(t, place, "", "a", "b"), true), need)
	require.NoError(t, os.RemoveAll(place))
	err = refused(continuedFrom(t, place, "", "a", "b"), true)
	require.ErrorContains(t, err, need)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NotContains(t, err.Error(), "worker 0")
	first := continuedFrom(t, place, "", "a", "b")
	first.deployment.Resume = false
	require.ErrorContains(t, refused(first, false), "--from: open "+place)

	from, err = continuedFrom(t, place, "", "a", "b").prepareFrom(t, a, b)
	require.NoError(t, err)
	require.Equal(t, &wire.Origin{Queues: []wire.OriginQueue{
		{Name: "a", Superstep: 495, InMemory: true}, {Name: "b", Superstep: 7, Ended: true, InMemory: true},
	}}, from)
}
