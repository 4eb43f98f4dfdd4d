package copies

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestGather requires that each worker alone holds the newest states after Gather, and after later
// states, also if the states are of an attempt before.
func TestGather(t *testing.T) {
	const workers = 5
	g := newGroup(t, workers, nil)
	alone := func(want ...State) {
		for w := range workers {
			var got []State
			for _, c := range Choose(g.held(w)) {
				got = append(got, c.State)
			}
			require.Equal(t, want, got, "worker %d", w)
		}
	}
	gather := func(want ...State) {
		states, err := g.xs[0].Gather(soon(t), noQueue)
		require.NoError(t, err)
		require.Equal(t, want, states)
		alone(want...)
	}
	gather()
	ended := State{Queue: "means", Superstep: 3, Ended: true, Of: 4}
	running := State{Queue: "trees", Superstep: 7, Of: 9}
	g.shareAll(ended)
	g.shareAll(running)
	alone()
	gather(ended, running)
	gather(ended, running) // once more
	running.Superstep = 8
	g.shareAll(running)
	alone(ended, running)

	g.share(0, State{Queue: "late", Superstep: 1, Of: 4}) // the others may share it long after
	states, err := g.xs[0].Gather(soon(t), func(queue string) bool { return queue == "late" })
	require.NoError(t, err)
	require.Equal(t, []State{ended, running}, states)
}

func noQueue(string) bool { return false }

// TestGatherOfFormerAttempt requires that the states from which an attempt continues are gathered,
// although other workers have shared them.
func TestGatherOfFormerAttempt(t *testing.T) {
	const workers = 5
	g := newGroup(t, workers, nil)
	s := State{Queue: "means", Superstep: 3, Of: 8}
	g.shareAll(s)
	held := g.held(0, 1, 2, 3, 4)
	held[2] = nil // the worker is lost
	choices := Choose(held)
	g = g.next([]int{0, 1, 3, 4})
	g.start(choices)
	states, err := g.xs[0].Gather(soon(t), noQueue)
	require.NoError(t, err)
	require.Equal(t, []State{s}, states)
	for w := range workers {
		require.Len(t, Choose(g.held(w)), 1, "worker %d", w)
		g.requireFetched(w, choices[0])
	}
}

// TestGatherEnds requires that Gather ends with its context and with the Exchange, and says why.
func TestGatherEnds(t *testing.T) {
	g := newGroup(t, 3, nil)
	g.share(0, State{Queue: "means", Superstep: 1, Of: 3})
	ctx, cancel := context.WithCancelCause(soon(t))
	cancel(errors.New("the worker leaves now"))
	_, err := g.xs[0].Gather(ctx, noQueue)
	require.EqualError(t, err, `the states of the queues are not copied to all workers yet: the worker leaves now`)
	g.xs[0].Close()
	_, err = g.xs[0].Gather(soon(t), noQueue)
	require.ErrorIs(t, err, errClosed)
	g.xs[0].Narrow()
}

// TestGatherAtAnyMoment gathers while states are shared, in random interleavings. From then on, each
// worker alone must hold the newest state that was gathered, or a newer one, at each moment.
func TestGatherAtAnyMoment(t *testing.T) {
	for seed := range uint64(testsize.Of(testsize.Raced(400, 100), 20_000)) {
		draw := rand.New(rand.NewPCG(seed, 44))
		workers := 2 + draw.IntN(4)
		n := newNetwork(t, draw, workers, 1+draw.IntN(min(3, workers-1)))
		s := State{Queue: "means", Superstep: 1, Of: 1 + draw.IntN(2*workers)}
		share := func() {
			for w := range workers {
				n.share(w, s, false)
			}
		}
		for share(); n.step(); {
		}
		s.Superstep++
		share()
		s.Superstep, s.Ended = 3, true
		if draw.IntN(2) == 0 {
			share()
		}
		for range draw.IntN(30) {
			n.step()
		}
		gathered := make(map[State]bool)
		var least State
		requireEverywhere := func() {
			for alone := range subsets(workers, workers-1) { // which are lost
				require.GreaterOrEqual(t, n.choose(alone).compare(least), 0, "seed %d: %s was gathered, and %v are lost", seed, least, alone)
			}
		}
		late := n.shares // the workers go on when the states are gathered, if they can be before
		if draw.IntN(2) == 0 {
			n.shares = make([][]step, workers)
		}
		for !n.cores[0].gatherAll(gathered, noQueue) {
			if !n.step() {
				n.shares = late
				require.True(t, n.step(), "seed %d: nothing happens any more", seed)
			}
		}
		n.shares = late
		least = n.stores[0].newest()[0]
		for requireEverywhere(); n.step(); requireEverywhere() {
		}
		if n.cores[0].begun["means"] != s {
			share()
			for n.step() {
				requireEverywhere()
			}
			least = s
			requireEverywhere()
		}
		require.Empty(t, n.cores[0].gathers, "seed %d", seed)
		for n.cores[0].narrow(); n.step(); {
		}
		for w := range workers {
			require.False(t, n.cores[w].wide, "seed %d", seed)
		}
		for w := range workers {
			require.Empty(t, n.cores[w].own, "seed %d", seed)
		}
	}
}
