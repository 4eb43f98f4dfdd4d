package engine

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/origin"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// continuedJob returns a job of one worker whose queues have subtasks in it, as if it had been built again for a
// later attempt. It saves durable states in dir, unless that is "", and copies states in any case.
func continuedJob(t *testing.T, dir string, queues ...string) *workerJob {
	environment, _ := fakeEnv(&fakePart{})
	d := deployment(wire.JobSpec{}, 0, 1).Deployment
	d.Keep, d.Resume, d.Attempt = true, true, 2
	p := &plan.Plan{Shards: 1, Slots: 1}
	for _, q := range queues {
		p.Queues = append(p.Queues, plan.Queue{Name: q})
		p.Vertices = append(p.Vertices, plan.Vertex{Queue: q, Parallelism: 1, Ranges: []sharding.Range{{Hi: 1}}})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	j := &workerJob{
		worker:     &worker{workerProcess: &workerProcess{env: environment, copies: &copies.Store{}}, context: ctx, cancel: cancel},
		deployment: d, plan: p, part: &fakePart{}, logger: hclog.NewNullLogger(),
	}
	j.copies, j.progress = j.newCopies(), newWorkerProgress(p, true, nil)
	opts := []Option{Logger(hclog.NewNullLogger())}
	if dir != "" {
		opts = append(opts, CheckpointDir(dir), Resume(true), CheckpointSupersteps(1000))
	}
	c, err := newConfig(opts)
	require.NoError(t, err)
	j.checkpoints = &workerCheckpoints{config: c, run: &checkpointed{
		graph: &plan.Graph{Job: "j"}, plan: p, part: task.Part{Slots: slotRanges(d)}, job: d.Job, attempt: d.Attempt,
	}}
	t.Cleanup(func() {
		j.closeCheckpoints(endLeft)
		j.copies.close()
	})
	return j
}

// write writes a durable checkpoint, as an earlier attempt of the job would.
func (c *workerCheckpoints) write(t *testing.T, states ...*task.Saved) {
	run, err := c.config.runOf(c.run)
	require.NoError(t, err)
	store, err := checkpoint.OpenDir(disk.OS(), c.config.checkpoints.dir)
	require.NoError(t, err)
	journal, err := checkpoint.Open(t.Context(), store, run)
	require.NoError(t, err)
	_, _, err = journal.Load(t.Context(), nil)
	require.NoError(t, err)
	var all []checkpoint.State
	for i, s := range states {
		_, pieces := s.Pieces()
		all = append(all, checkpoint.State{Queue: c.run.plan.Queues[i].Name, Superstep: s.Step, Ended: s.Last, Pieces: pieces})
	}
	_, _, err = journal.Write(t.Context(), all)
	require.NoError(t, err)
	require.NoError(t, store.Close())
}

// inMemory returns what a worker says that holds the given states in its memory.
func inMemory(t *testing.T, states ...copies.State) [][]byte {
	var held []copies.Held
	for _, s := range states {
		held = append(held, copies.Held{State: s, Pieces: []int{0, 1}})
	}
	data, err := origin.Encode(origin.Held{Copies: copies.AppendHeld(nil, held)})
	require.NoError(t, err)
	return [][]byte{data}
}

// TestSaveNowWhileQueuesReadTheirInputs requires that a request which comes before queues that continue have done
// a superstep awaits their next states, wherever they continue from. It does not await queues that have ended
// or have not begun, as these may do no superstep for long.
func TestSaveNowWhileQueuesReadTheirInputs(t *testing.T) {
	j := continuedJob(t, t.TempDir(), "durable", "ended", "memory", "new")
	j.checkpoints.write(t, savedOfOne(269, false), savedOfOne(7, true), savedOfOne(12, false))
	j.worker.prepare = &wire.Prepare{Held: inMemory(t, copies.State{Queue: "memory", Superstep: 363, Of: 2})}
	require.NoError(t, j.prepare(t.Context()).err)

	var a answers
	answered := make(chan struct{}, 1)
	require.NoError(t, j.checkpoints.saveNow("", func(m *checkpoint.Manifest, err error) {
		a.done(m, err)
		require.Equal(t, []wire.OriginQueue{
			{Name: "durable", Superstep: 270}, {Name: "ended", Superstep: 7, Ended: true}, {Name: "memory", Superstep: 364},
		}, queuesOf(m))
		answered <- struct{}{}
	}))
	for _, next := range []wire.OriginQueue{{Name: "durable", Superstep: 270}, {Name: "memory", Superstep: 364}} {
		require.Empty(t, answered)
		require.True(t, j.checkpoints.Due(next.Name, next.Superstep), "queue %s", next.Name)
		j.checkpoints.Save(next.Name, savedOfOne(next.Superstep, false))
	}
	<-answered
	require.Equal(t, []error{nil}, a.errs)
}

// TestStatesOnRequestWhileQueuesReadTheirInputs is like TestSaveNowWhileQueuesReadTheirInputs, for states that are only
// in memory.
func TestStatesOnRequestWhileQueuesReadTheirInputs(t *testing.T) {
	j, ask := jobOfOneWorker(t)
	c := j.copies
	j.continues(&wire.Origin{Queues: []wire.OriginQueue{
		{Name: "a", Superstep: 490, InMemory: true}, {Name: "b", Superstep: 7, Ended: true, InMemory: true},
	}})
	got := ask()
	require.Empty(t, got)
	due, _ := c.decide("a", 491)
	require.True(t, due)
	require.Empty(t, got)
	c.share("a", savedOfOne(491, false))
	require.Equal(t, answered{states: []copies.State{{Queue: "a", Superstep: 491, Of: 2}}}, <-got)

	j.continues(&wire.Origin{Queues: []wire.OriginQueue{{Name: "c", Superstep: 3, InMemory: true}}})
	got = ask()
	c.close()
	require.ErrorIs(t, (<-got).err, errRunEnded, "the attempt ends, as at a time limit")
}

// TestSaveNowAfterASavepoint requires that a request which comes before the first superstep after a savepoint awaits
// that superstep, and that it is answered with an error if the attempt ends before.
func TestSaveNowAfterASavepoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{blobs: make(map[string][]byte)}
		s, err := startSaver(t.Context(), store, "j", &checkpointConfig{steps: 1}, hclog.NewNullLogger(), nil)
		require.NoError(t, err)
		s.continues(origin.Running(&wire.Origin{Savepoint: 3, Queues: []wire.OriginQueue{{Name: "a", Superstep: 5}}}))
		var a answers
		require.NoError(t, s.saveNow("", a.done))
		synctest.Wait()
		require.Empty(t, a.errs)
		s.Save("a", cutAt(6, true))
		synctest.Wait()
		require.Equal(t, answers{numbers: []int{1}, errs: []error{nil}}, a)
		require.Equal(t, map[string]int{"a": 6}, store.steps(t))
		s.continues([]string{"b"})
		require.NoError(t, s.saveNow("", a.done))
		s.close(endLeft)
		require.ErrorIs(t, a.errs[1], errRunEnded)
	})
}
