package engine

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/origin"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestCopyPace simulates supersteps and copies that cost time. It requires that copies and meetings
// together take at most a twentieth of the time once the cost is known, and that a state is copied
// after each superstep if copies cost next to nothing.
func TestCopyPace(t *testing.T) {
	const meeting = 200 * time.Microsecond
	for _, c := range []struct {
		step, cost, under time.Duration // under is how long a copy is under way
		every             bool          // a copy after each superstep
	}{
		{step: 100 * time.Millisecond, cost: 600 * time.Microsecond, under: 90 * time.Millisecond, every: true},
		{step: time.Second, cost: 9 * time.Millisecond, under: 900 * time.Millisecond, every: true},
		{step: 100 * time.Millisecond, cost: 50 * time.Millisecond, under: time.Second},
		{step: 80 * time.Microsecond, cost: 500 * time.Microsecond, under: time.Millisecond},
		{step: 2 * time.Millisecond, cost: 300 * time.Microsecond, under: 300 * time.Microsecond},
	} {
		p := &copyPace{}
		now, free := time.Unix(0, 0), time.Unix(0, 0)
		var work, cost time.Duration
		meet, copied, steps := 1, 0, 0
		for step := 1; work < 300*time.Second; step++ {
			now, work, steps = now.Add(c.step), work+c.step, steps+1
			if step < meet {
				continue
			}
			now, cost = now.Add(meeting), cost+meeting
			due, next := p.decide(now, step, !now.Before(free))
			if meet = step + max(next, 1); due {
				p.spent += c.cost
				copied++
				cost += c.cost
				now, free = now.Add(c.cost), now.Add(c.under)
			}
		}
		require.Less(t, cost, work/20, "%+v: %d copies", c, copied)
		require.Equal(t, c.every, copied == steps, "%+v: %d copies of %d supersteps", c, copied, steps)
	}
}

// TestFirstCopies requires that the cost of the first copy, which takes memory and connects, does not
// decide for long how often a state is copied.
func TestFirstCopies(t *testing.T) {
	p := &copyPace{}
	costs := []time.Duration{500 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond}
	const step = 50 * time.Millisecond
	var at []time.Duration
	for now := time.Duration(0); len(at) < len(costs); now += step {
		if due, _ := p.decide(time.Unix(0, 0).Add(now), int(now/step)+1, true); due {
			p.spent = costs[len(at)]
			at = append(at, now)
		}
	}
	require.Equal(t, []time.Duration{0, 10050 * time.Millisecond, 12100 * time.Millisecond, 14150 * time.Millisecond}, at)
}

// TestCopiesOfLaterAttempts requires that an attempt after a lost one copies its state often at first, so that a
// job gets on although no attempt lasts as long as copies are apart in the first.
func TestCopiesOfLaterAttempts(t *testing.T) {
	const step, cost = 50 * time.Millisecond, 100 * time.Millisecond
	copied := func(again bool, until time.Duration) (n int) {
		p := &copyPace{again: again}
		for now := time.Duration(0); now < until; now += step {
			if due, _ := p.decide(time.Unix(0, 0).Add(now), int(now/step)+1, true); due {
				p.spent = cost
				n++
			}
		}
		return n
	}
	require.Equal(t, 2, copied(false, 10*time.Second))
	require.Equal(t, 5, copied(true, 10*time.Second))
	require.InDelta(t, copied(false, time.Hour), copied(true, time.Hour), 6)
}

// TestOriginFromMemory requires that each queue continues from the newest of its states, in memory or
// in a checkpoint, and that the origin says which.
func TestOriginFromMemory(t *testing.T) {
	environment, _ := fakeEnv(&fakePart{})
	d := deployment(wire.JobSpec{}, 0, 2).Deployment
	d.Keep = true
	const queue = "q"
	j := &workerJob{worker: &worker{workerProcess: &workerProcess{env: environment, copies: &copies.Store{}}}, deployment: d, plan: &plan.Plan{Queues: []plan.Queue{{Name: queue}}}}
	j.copies = j.newCopies()
	held := func(states ...copies.Held) [][]byte {
		data, err := origin.Encode(origin.Held{Copies: copies.AppendHeld(nil, states)})
		require.NoError(t, err)
		return [][]byte{data, nil}
	}
	state := func(name string, superstep int, pieces ...int) copies.Held {
		return copies.Held{State: copies.State{Queue: name, Superstep: superstep, Of: 2}, Pieces: pieces}
	}
	at := func(superstep int, inMemory bool) *wire.Origin {
		return &wire.Origin{Number: 7, Queues: []wire.OriginQueue{{Name: queue, Superstep: superstep, InMemory: inMemory}}}
	}
	for _, test := range []struct {
		name       string
		held       [][]byte
		from, want *wire.Origin
	}{
		{"nothing", [][]byte{nil, nil}, nil, nil},
		{"a piece is lost", held(state(queue, 5, 0)), nil, nil},
		{"another job's queue", held(state("other", 5, 0, 1)), nil, nil},
		{"in memory", held(state(queue, 5, 0, 1)), nil, &wire.Origin{Queues: at(5, true).Queues}},
		{"newer in memory", held(state(queue, 5, 0, 1)), at(3, false), at(5, true)},
		{"newer in the checkpoint", held(state(queue, 5, 0, 1)), at(6, false), at(6, false)},
	} {
		got, err := j.copies.chooseCopies(test.held, test.from)
		require.NoError(t, err, test.name)
		require.Equal(t, test.want, got, test.name)
	}
	_, err := j.copies.chooseCopies([][]byte{{0xc1}}, nil)
	require.ErrorContains(t, err, "what worker 0 has kept")
}

// TestUnsavedStates requires that a state that cannot be saved fails a run with durable checkpoints,
// and one whose states must be saved, and is otherwise only logged, and in the progress for the client.
func TestUnsavedStates(t *testing.T) {
	unsavable := errors.New("it cannot be saved")
	for _, test := range []struct {
		name     string
		settings checkpointConfig
		want     string
	}{
		{"copies", checkpointConfig{}, ""},
		{"copies and a savepoint to begin from", checkpointConfig{savepoint: "/saved"}, ""},
		{"a directory", checkpointConfig{dir: "/shared"}, "it cannot be saved"},
		{"copies that are required", checkpointConfig{require: true}, "--checkpoint require: it cannot be saved"},
	} {
		var log bytes.Buffer
		j := &workerJob{logger: hclog.New(&hclog.LoggerOptions{Output: &log}), deployment: deployment(wire.JobSpec{}, 0, 2).Deployment, progress: newWorkerProgress(&plan.Plan{}, false, nil)}
		err := j.unsaved(&config{checkpoints: test.settings})("q", unsavable)
		if test.want == "" {
			require.NoError(t, err, test.name)
			require.Contains(t, log.String(), "another attempt would begin it at superstep 1", test.name)
			require.Equal(t, []wire.Uncopied{{Queue: "q", Why: "it cannot be saved"}}, j.progress.take(false).Uncopied, test.name)
			continue
		}
		require.Nil(t, j.progress.take(false), test.name)
		require.ErrorIs(t, err, unsavable, test.name)
		require.ErrorContains(t, err, test.want, test.name)
		require.Empty(t, log.String(), test.name)
	}
}

// TestCopiesWithoutRoom requires that copies that come to nothing are tried less and less often, at least once
// in about a minute, and as often as before once one succeeds.
func TestCopiesWithoutRoom(t *testing.T) {
	p := &copyPace{}
	var at []time.Duration
	const step = 10 * time.Millisecond
	now := time.Duration(0)
	run := func(until time.Duration, void bool) {
		for ; now < until; now += step {
			p.settled(void)
			due, _ := p.decide(time.Unix(0, 0).Add(now), int(now/step)+1, true)
			if p.underWay = due; due {
				p.spent = 10 * time.Microsecond
				at = append(at, now)
			}
		}
	}
	run(5*time.Minute, true)
	for i := 1; i < len(at); i++ {
		want := voidWait << min(i-1, maxVoids)
		require.InDelta(t, want, at[i]-at[i-1], float64(2*step), "copy %d", i)
	}
	require.Len(t, at, 10)
	at = nil
	run(10*time.Minute, false)
	require.Greater(t, len(at), 1000)
}

// TestCopiesCountInTheBudget requires that what a process holds of states counts against the budget of its
// attempt, and that copies have no room where rows have taken it, beyond an eighth.
func TestCopiesCountInTheBudget(t *testing.T) {
	store := &copies.Store{}
	c := &workerCopies{job: &workerJob{worker: &worker{workerProcess: &workerProcess{copies: store}}}}
	require.True(t, c.room(1<<40), "the default budget is not known here")
	b := c.budgetOf(8000)
	require.True(t, c.room(8000))
	require.NoError(t, store.Put(copies.State{Queue: "q", Superstep: 1, Of: 1}, 0, make([]byte, 500)))
	held := store.Memory()
	require.Greater(t, held, int64(500))
	require.False(t, b.TryReserve(8001-held), "rows spill because of what the store holds")
	require.True(t, b.TryReserve(8000-held))
	require.True(t, c.room(1000-held))
	require.False(t, c.room(1001-held))
}

// TestFilesAreReadOnce requires that a process reads the states in files when its worker is ready for the first time,
// which may be in a later attempt than its first. What it keeps from then on is newer.
func TestFilesAreReadOnce(t *testing.T) {
	j, _ := jobOfOneWorker(t)
	j.deployment.StateDir, j.deployment.Attempt = t.TempDir(), 3
	s := copies.State{Queue: "means", Superstep: 4, Of: 1}
	store := &copies.Store{}
	require.NoError(t, store.Put(s, 0, []byte("means after superstep 4")))
	files := copies.Files{Dir: j.deployment.StateDir, Job: string(j.deployment.Job), Attempt: 1, Logger: hclog.NewNullLogger()}
	files.Write(t.Context(), store, s)

	j.logger, j.worker.attempts = hclog.NewNullLogger(), 2 // the first ended before its worker was ready
	j.copies.readFiles()
	require.Equal(t, store.Held(), j.worker.copies.Held())

	j.worker.copies = &copies.Store{}
	j.copies.readFiles()
	require.Empty(t, j.worker.copies.Held())
}
