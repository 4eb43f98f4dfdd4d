package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// answered is an answer of workerCopies.saveNow.
type answered struct {
	states []copies.State
	err    error
}

// TestStatesOnRequest requires that a worker without others keeps no states but those that it is asked
// for, each after the next superstep of its queue, and those after last supersteps. A request must be
// answered also if a state cannot be saved, and if the run ends before.
func TestStatesOnRequest(t *testing.T) {
	environment, _ := fakeEnv(&fakePart{})
	d := deployment(wire.JobSpec{}, 0, 1).Deployment
	d.Keep = true
	j := &workerJob{worker: &worker{workerProcess: &workerProcess{env: environment, copies: &copies.Store{}}}, deployment: d}
	c := j.newCopies()
	j.copies = c
	ask := func() <-chan answered {
		got := make(chan answered, 1)
		require.NoError(t, c.saveNow(func(states []copies.State, err error) { got <- answered{states, err} }))
		return got
	}
	require.ErrorIs(t, c.saveNow(nil), errRunEnded, "the attempt has not started")

	port, err := peerlink.Listen(peerlink.Config{Job: "test", Secret: []byte("secret of the test")})
	require.NoError(t, err)
	defer port.Close()
	c.exchange, err = copies.New(copies.Config{Port: port, Workers: 1, Store: j.worker.copies})
	require.NoError(t, err)
	superstep := func(queue string, step int) bool {
		due, _ := c.decide(queue, step)
		return due
	}
	save := func(queue string, step int, last bool) copies.State {
		c.share(queue, &task.Saved{Cut: task.Cut{Step: step, Last: last, Parts: make([]task.CutPart, 1)}, Here: sharding.Range{Hi: 1}, Subtasks: 1})
		return copies.State{Queue: queue, Superstep: step, Ended: last, Of: 2}
	}
	require.Empty(t, (<-ask()).states, "no queue has done a superstep")
	require.False(t, superstep("a", 1), "nobody has asked")
	require.False(t, superstep("b", 1))

	got := ask()
	require.True(t, superstep("a", 2))
	a := save("a", 2, false)
	require.False(t, superstep("a", 3), "no other state begins before all are gathered")
	require.Empty(t, got)
	require.True(t, superstep("b", 2))
	b := save("b", 2, false)
	require.Equal(t, answered{states: []copies.State{a, b}}, <-got)

	got = ask()
	b = save("b", 3, true) // its last superstep, for which nobody decides
	require.True(t, superstep("a", 4))
	a = save("a", 4, false)
	require.Equal(t, answered{states: []copies.State{a, b}}, <-got)

	got = ask()
	settings, err := newConfig(nil)
	require.NoError(t, err)
	require.NoError(t, j.unsaved(settings)("a", errors.New("a codec is broken")))
	require.EqualError(t, (<-got).err, `the state of queue "a" cannot be saved: a codec is broken`)
	require.Equal(t, []copies.State{a, b}, (<-ask()).states, "nothing is awaited of a queue that cannot be saved")

	superstep("c", 1)
	got = ask()
	c.close()
	require.ErrorIs(t, (<-got).err, errRunEnded)
	require.ErrorIs(t, c.saveNow(nil), errRunEnded)
}

// TestNarrowed requires that the time for which states go to all workers ends once, and not while a
// request is open.
func TestNarrowed(t *testing.T) {
	now := time.Now()
	s := &memorySaves{narrow: now, open: 1}
	require.False(t, s.narrowed(now))
	s.open = 0
	require.False(t, s.narrowed(now.Add(-1)))
	require.True(t, s.narrowed(now))
	require.False(t, s.narrowed(now.Add(1)))
}
