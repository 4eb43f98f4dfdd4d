package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/origin"
	"github.com/superstep-ml/superstep/engine/plan"
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

// jobOfOneWorker returns a job that copies states and has one worker, and a function that asks for them.
// room is as in copies.Config; there is at most one.
func jobOfOneWorker(t *testing.T, room ...func(int64) bool) (*workerJob, func() <-chan answered) {
	environment, _ := fakeEnv(&fakePart{})
	d := deployment(wire.JobSpec{}, 0, 1).Deployment
	d.Keep = true
	j := &workerJob{worker: &worker{workerProcess: &workerProcess{env: environment, copies: &copies.Store{}}}, deployment: d}
	c := j.newCopies()
	j.copies = c
	require.ErrorIs(t, c.saveNow(nil), errRunEnded, "the attempt has not started")
	port, err := peerlink.Listen(peerlink.Config{Job: "test", Secret: []byte("secret of the test")})
	require.NoError(t, err)
	config := copies.Config{Port: port, Workers: 1, Store: j.worker.copies}
	for _, r := range room {
		config.Room = r
	}
	c.exchange, err = copies.New(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		c.close()
		require.NoError(t, port.Close())
	})
	return j, func() <-chan answered {
		got := make(chan answered, 1)
		require.NoError(t, c.saveNow(func(states []copies.State, err error) { got <- answered{states, err} }))
		return got
	}
}

// savedOfOne returns a state of a queue that has one subtask.
func savedOfOne(step int, last bool) *task.Saved {
	return &task.Saved{Cut: task.Cut{Step: step, Last: last, Parts: make([]task.CutPart, 1)}, Here: sharding.Range{Hi: 1}, Subtasks: 1}
}

// TestStatesOnRequest requires that a worker without others keeps no states but those that it is asked
// for, each after the next superstep of its queue, and those after last supersteps. A queue that has done
// supersteps while another one was awaited is awaited again. A request must be answered also if the run
// ends before.
func TestStatesOnRequest(t *testing.T) {
	j, ask := jobOfOneWorker(t)
	c := j.copies
	superstep := func(queue string, step int) bool {
		due, _ := c.decide(queue, step)
		return due
	}
	save := func(queue string, step int, last bool) copies.State {
		c.share(queue, savedOfOne(step, last))
		require.NoError(t, c.exchange.Await(t.Context(), queue))
		return copies.State{Queue: queue, Superstep: step, Ended: last, Of: 2}
	}
	require.Empty(t, (<-ask()).states, "no queue has done a superstep")
	require.False(t, superstep("a", 1), "nobody has asked")
	require.False(t, superstep("b", 1))

	got := ask()
	require.True(t, superstep("a", 2))
	save("a", 2, false)
	require.False(t, superstep("a", 3))
	require.Empty(t, got)
	require.True(t, superstep("b", 2))
	b := save("b", 2, false)
	require.Empty(t, got, "superstep 3 of the other queue would be lost")
	require.True(t, superstep("a", 4))
	a := save("a", 4, false)
	require.Equal(t, answered{states: []copies.State{a, b}}, <-got)

	got = ask()
	b = save("b", 3, true) // its last superstep, for which nobody decides
	require.True(t, superstep("a", 5))
	a = save("a", 5, false)
	require.Equal(t, answered{states: []copies.State{a, b}}, <-got)

	superstep("c", 1)
	got = ask()
	c.close()
	require.ErrorIs(t, (<-got).err, errRunEnded)
	require.ErrorIs(t, c.saveNow(nil), errRunEnded)
}

// TestStatesThatCannotBeSaved requires that a request fails if a queue that has done supersteps would begin
// again, because its state could not be saved before or after the request, or because the plan says so.
// The queue goes on with its supersteps, which must not make a later request wait for ever.
func TestStatesThatCannotBeSaved(t *testing.T) {
	j, ask := jobOfOneWorker(t)
	c := j.copies
	c.decide("a", 1)
	c.decide("b", 1)
	got := ask()
	settings, err := newConfig(nil)
	require.NoError(t, err)
	const why = `the state of queue "a" cannot be saved: a codec is broken`
	require.NoError(t, j.unsaved(settings)("a", errors.New("a codec is broken")))
	require.EqualError(t, (<-got).err, why)
	c.decide("a", 2)
	c.decide("b", 2)
	require.EqualError(t, c.saveNow(nil), why)

	j, ask = jobOfOneWorker(t)
	j.plan = &plan.Plan{Nodes: []plan.Node{{Queue: "a"}, {Queue: "b", Op: "AddNew", Unkept: true}}}
	j.copies.opened("a")
	require.NoError(t, (<-ask()).err)
	j.copies.opened("b")
	require.EqualError(t, j.copies.saveNow(nil), `the state of queue "b" cannot be saved: AddNew has fields and no snapshot`)
}

// TestStatesWithoutRoom requires that a request fails if there is no memory for a copy of a state that it asks
// for, as supersteps would be done again. The next request must have an answer again when there is.
func TestStatesWithoutRoom(t *testing.T) {
	full := true
	j, ask := jobOfOneWorker(t, func(int64) bool { return !full })
	c := j.copies
	save := func(step int, last bool) {
		c.share("a", savedOfOne(step, last))
		require.NoError(t, c.exchange.Await(t.Context(), "a"))
	}
	c.decide("a", 1)
	got := ask()
	due, _ := c.decide("a", 2)
	require.True(t, due)
	save(2, false)
	require.ErrorContains(t, (<-got).err, `the state of queue "a" cannot be saved: a worker had no memory for its part`)

	full = false
	got = ask()
	due, _ = c.decide("a", 3)
	require.True(t, due)
	save(3, false)
	complete := copies.State{Queue: "a", Superstep: 3, Of: 2}
	require.Equal(t, answered{states: []copies.State{complete}}, <-got)

	full = true
	got = ask()
	save(4, true)
	require.ErrorContains(t, (<-got).err, "no memory")
	require.Equal(t, answered{states: []copies.State{complete}}, <-ask(), "nothing is asked of a queue that has ended")
}

// TestRoomOnRequest requires that worker 0 has room for a state that is asked for, whatever the budget, and not for
// others.
func TestRoomOnRequest(t *testing.T) {
	j, ask := jobOfOneWorker(t)
	c := j.copies
	c.budgetOf(1000)
	require.True(t, c.room(1000))
	require.False(t, c.room(1001))
	c.decide("a", 1)
	got := ask()
	require.True(t, c.room(1001))
	c.decide("a", 2)
	c.share("a", savedOfOne(2, false))
	require.NoError(t, (<-got).err)
	require.False(t, c.room(1001))
}

// TestRequiredOfOneWorker requires that with --checkpoint require a worker without others saves the state of
// each queue after its first superstep, as the run would fail after the last one otherwise if that cannot
// be saved.
func TestRequiredOfOneWorker(t *testing.T) {
	j, _ := jobOfOneWorker(t)
	j.deployment.Spec.Run.RequireCheckpoints = true
	for step, want := range []bool{true, false, false} {
		for _, queue := range []string{"a", "b"} {
			due, _ := j.copies.decide(queue, 1+step)
			require.Equal(t, want, due, "queue %s, superstep %d", queue, 1+step)
		}
	}
}

// TestReportOfOneWorker requires that a worker without others keeps the report of a queue as other states,
// so that it is copied when the next attempt has more workers.
func TestReportOfOneWorker(t *testing.T) {
	j, _ := jobOfOneWorker(t)
	j.copies.closed("a", []byte("report"))
	require.NoError(t, j.copies.exchange.Await(t.Context(), origin.ReportOf("a").Queue))
	require.Equal(t, []copies.Held{{State: origin.ReportOf("a"), Pieces: []int{0}}}, j.worker.copies.Held())
}

// TestDecisionsAllocateNothing requires that a worker without others, which nobody asks for states, allocates
// nothing in a superstep.
func TestDecisionsAllocateNothing(t *testing.T) {
	j, _ := jobOfOneWorker(t)
	states, step := &queueStates{copies: j.copies}, 0
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		step++
		states.Decide("a", step)
	}))
}

// TestCopyThatDoesNotEnd requires that a request fails if another copy of the state of a queue is under way
// for too long, as it is if another worker cannot save its part.
func TestCopyThatDoesNotEnd(t *testing.T) {
	j, ask := jobOfOneWorker(t)
	s, now := &j.copies.saves, time.Now()
	s.decide(now, "a", true)
	got := ask()
	for _, at := range []time.Duration{0, gatherLimit, gatherLimit + 1} {
		require.Empty(t, got)
		j.copies.mu.Lock()
		due, known := s.decide(now.Add(at), "a", false)
		j.copies.mu.Unlock()
		require.False(t, due)
		require.True(t, known)
	}
	require.EqualError(t, (<-got).err, `the state of queue "a" cannot be saved: another copy of it has not ended within 1m0s`)
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
