package copies

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLosses shares several states of two queues between two to five workers. Whichever workers are
// then lost, as many as there are copies, the rest of the workers must hold the newest state. The
// next attempt must get its pieces from them, and hold as many copies again, so that the same number
// of workers may be lost once more.
func TestLosses(t *testing.T) {
	for workers := 2; workers <= 5; workers++ {
		for copies := 1; copies <= min(3, workers-1); copies++ {
			t.Run(fmt.Sprintf("workers=%d,copies=%d", workers, copies), func(t *testing.T) {
				g := newGroup(t, workers, func(_ int, c *Config) { c.Copies = copies })
				var newest []State
				for _, queue := range []string{"means", "trees"} {
					s := State{Queue: queue, Of: 1 + 2*workers}
					for s.Superstep = 1; s.Superstep <= 3; s.Superstep++ {
						g.shareAll(s)
						require.True(t, g.xs[0].Settled(queue))
						newest = append(newest[:len(newest):len(newest)], s)
					}
				}
				newest = []State{newest[2], newest[5]}
				for lost := range subsets(workers, copies) {
					choices := Choose(g.held(g.others(lost...)...))
					require.Equal(t, newest, []State{choices[0].State, choices[1].State}, "without %v", lost)
				}
				for lost := range subsets(workers, copies) {
					held := make([][]Held, workers)
					for _, w := range g.others(lost...) {
						held[w] = g.stores[w].Held()
					}
					n := g.next(g.others(lost...))
					choices := Choose(held)
					n.start(choices)
					for _, c := range choices {
						for w := range n.xs {
							n.requireFetched(w, c)
						}
						require.NoError(t, n.xs[0].Await(soon(t), c.Queue))
					}
					for again := range subsets(workers, copies) {
						choices := Choose(n.held(n.others(again...)...))
						require.Equal(t, newest, []State{choices[0].State, choices[1].State}, "without %v and %v", lost, again)
					}
					g = n
				}
			})
		}
	}
}

// TestOneStateIsKept requires that each Store holds only the newest state once it is settled.
func TestOneStateIsKept(t *testing.T) {
	const workers = 4
	g := newGroup(t, workers, func(_ int, c *Config) { c.Copies = 2 })
	s := State{Queue: "means", Of: 9}
	for s.Superstep = 1; s.Superstep <= 5; s.Superstep++ {
		g.shareAll(s)
		for w := range workers {
			var want []int
			var size int64
			for i := range s.Of {
				for owner := range workers {
					if lo, hi := numbersOf(s, owner, workers); lo <= i && i < hi && (w-owner+workers)%workers <= 2 {
						want, size = append(want, i), size+int64(sizeOf(s, i))
					}
				}
			}
			require.Equal(t, []Held{{s, want}}, g.stores[w].Held(), "worker %d", w)
			require.Equal(t, size, g.stores[w].Size())
		}
	}
}

// TestLastStateDoesNotWait shares the state after the last superstep while the one before is under
// way, as one worker has not shared it yet.
func TestLastStateDoesNotWait(t *testing.T) {
	g := newGroup(t, 3, nil)
	before := State{Queue: "means", Superstep: 4, Of: 4}
	last := State{Queue: "means", Superstep: 5, Ended: true, Of: 4}
	g.shareAll(State{Queue: "means", Superstep: 3, Of: 4})
	g.share(0, before)
	g.share(1, before)
	require.False(t, g.xs[0].Settled("means"))
	g.share(0, last)
	g.share(1, last)
	g.share(2, before)
	g.share(2, last)
	require.NoError(t, g.xs[0].Await(soon(t), "means"))
	for lost := range 3 {
		require.Equal(t, last, Choose(g.held(g.others(lost)...))[0].State)
	}
	for w := range 3 {
		require.Len(t, g.stores[w].Held(), 1)
	}
	for _, s := range []State{before, last} {
		g.xs[0].Share(s, 0, func(func([]byte, error) bool) { t.Errorf("%s is shared again", s) })
		require.True(t, g.xs[0].Settled("means"))
	}
	g.shareAll(State{Queue: "trees", Superstep: 1, Of: 4}) // comes after what was shared before
}

// TestNextAttempt lets an attempt end in the middle of a state. The next one, of other subtasks, must
// continue from the state before and make the newer one again. An attempt that begins at an earlier
// superstep, as no worker holds what it needs, must be able to share its states.
func TestNextAttempt(t *testing.T) {
	g := newGroup(t, 3, nil)
	s := State{Queue: "means", Superstep: 4, Of: 7}
	g.shareAll(s)
	half := State{Queue: "means", Superstep: 5, Of: 7}
	g.share(0, half)
	g.share(1, half)
	for len(g.stores[2].Held()) < 2 { // worker 2 gets copies from worker 1
		runtime.Gosched()
	}
	for _, x := range g.xs {
		x.Close()
	}

	choices := Choose(g.held(0, 1, 2))
	require.Len(t, choices, 1)
	require.Equal(t, s, choices[0].State)
	g = g.next([]int{0, 1, 2})
	g.start(choices)
	for w := range g.xs {
		require.Len(t, g.stores[w].Held(), 1)
		g.requireFetched(w, choices[0])
	}
	require.NoError(t, g.xs[0].Await(soon(t), "means"))
	whole := State{Queue: "means", Superstep: 5, Of: 4}
	g.shareAll(whole)
	for w := range g.xs {
		held := g.stores[w].Held()
		require.Len(t, held, 1)
		require.Equal(t, whole, held[0].State)
	}

	g = g.next([]int{0, 1, 2})
	g.start(nil)
	require.Equal(t, make([][]Held, 3), g.held(0, 1, 2))
	again := State{Queue: "means", Superstep: 2, Of: 4}
	g.shareAll(again)
	for lost := range 3 {
		require.Equal(t, again, Choose(g.held(g.others(lost)...))[0].State)
	}
}

// TestHolderWithoutPiece lets an attempt continue from a state of which a worker does not hold the
// piece that it should send to another. This must not prevent that later states are settled.
func TestHolderWithoutPiece(t *testing.T) {
	g := &group{t: t}
	s := State{Queue: "means", Superstep: 4, Of: 2}
	for range 3 {
		g.add(&Store{})
	}
	require.NoError(t, g.stores[2].Put(s, 0, content(s, 0, sizeOf(s, 0))))
	g.start([]Choice{{s, [][]int{{2}, {1}}}})
	require.NoError(t, g.xs[0].Await(soon(t), "means"))
	require.Equal(t, []Held{{s, []int{0}}}, g.stores[0].Held(), "the copy that could be made")
	s.Superstep = 5
	g.shareAll(s)
	require.Equal(t, s, Choose(g.held(0, 1))[0].State)
}

// TestAlone requires that a worker without others keeps its states.
func TestAlone(t *testing.T) {
	g := newGroup(t, 1, func(_ int, c *Config) { c.Where = nil })
	s := State{Queue: "means", Of: 3}
	for s.Superstep = 1; s.Superstep <= 3; s.Superstep++ {
		g.shareAll(s)
		choices := Choose(g.held(0))
		require.Len(t, choices, 1)
		require.Equal(t, s, choices[0].State)
		g.requireFetched(0, choices[0])
	}
}

// TestPieceThatFails lets a worker fail to encode a piece. The state must be given up everywhere, the
// one before must be kept, and the next one must be copied.
func TestPieceThatFails(t *testing.T) {
	g := newGroup(t, 3, nil)
	s := State{Queue: "means", Superstep: 1, Of: 4}
	g.shareAll(s)
	void := State{Queue: "means", Superstep: 2, Of: 4}
	g.share(0, void)
	g.share(2, void)
	g.xs[1].Share(void, 2, func(yield func([]byte, error) bool) {
		if yield([]byte("some"), nil) {
			yield(nil, errors.New("an object has no codec"))
		}
	})
	require.NoError(t, g.xs[0].Await(soon(t), "means"))
	for w := range 3 {
		held := g.stores[w].Held()
		require.Len(t, held, 1)
		require.Equal(t, s, held[0].State)
	}
	next := State{Queue: "means", Superstep: 3, Of: 4}
	g.shareAll(next)
	for lost := range 3 {
		require.Equal(t, next, Choose(g.held(g.others(lost)...))[0].State)
	}
}

// TestAwaitEnds requires that Await ends with its context and with the Exchange, and says why.
func TestAwaitEnds(t *testing.T) {
	g := newGroup(t, 2, nil)
	g.share(0, State{Queue: "means", Superstep: 1, Of: 3})
	ctx, cancel := context.WithCancelCause(soon(t))
	cancel(errors.New("the worker leaves now"))
	require.EqualError(t, g.xs[0].Await(ctx, "means"), `the state of queue "means" is not copied yet: the worker leaves now`)
	g.xs[0].Close()
	require.ErrorIs(t, g.xs[0].Await(soon(t), "means"), errClosed)
	g.share(0, State{Queue: "trees", Superstep: 1, Of: 3})
	require.True(t, g.xs[0].Settled("trees"), "Share must do nothing after Close")
}

// TestSpent shares a state of which only one piece is long, and requires that its sender and its receiver
// say what that took, besides the time to make the pieces.
func TestSpent(t *testing.T) {
	const workers = 3
	var mu sync.Mutex
	calls, spent := make([]int, workers), make([]time.Duration, workers)
	g := newGroup(t, workers, func(w int, c *Config) {
		c.Spent = func(queue string, cost time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, "means", queue)
			calls[w]++
			spent[w] += cost
		}
	})
	s := State{Queue: "means", Superstep: 1, Of: 1 + workers}
	for w, x := range g.xs {
		first, last := numbersOf(s, w, workers)
		x.Share(s, first, func(yield func([]byte, error) bool) {
			for i := first; i < last; i++ {
				size := 100
				if i == 2 { // of worker 1, for worker 2
					size = 4 * meteredBytes
				}
				if !yield(content(s, i, size), nil) {
					return
				}
			}
		})
	}
	require.NoError(t, g.xs[0].Await(soon(t), s.Queue))
	for _, x := range g.xs { // a piece may have arrived before its sender says what it took
		x.Close()
	}
	require.Equal(t, []int{1, 2, 2}, calls)
	for w, cost := range spent {
		require.Positive(t, cost, "worker %d", w)
	}
}

// TestWorkersThatOnlyGive requires that workers which only give what they hold of the former attempt are
// asked for it, get no copies, and may leave when the others have it.
func TestWorkersThatOnlyGive(t *testing.T) {
	g := newGroup(t, 4, nil)
	s := State{Queue: "means", Superstep: 1, Of: 9}
	g.shareAll(s)
	require.NoError(t, g.xs[0].Await(soon(t), s.Queue))
	choices := Choose(g.held(0, 1, 2, 3))
	n := g.next([]int{0, 1, 2, 3})
	n.change = func(_ int, c *Config) { c.Sharing = 2 }
	n.start(choices)
	for w := range 2 {
		require.NoError(t, n.xs[w].Inherit(soon(t)))
		n.requireFetched(w, choices[0])
	}
	n.lose(2)
	n.lose(3)
	s.Superstep = 2
	for w := range 2 {
		first, pieces := piecesOf(s, w, 2)
		n.xs[w].Share(s, first, pieces)
	}
	require.NoError(t, n.xs[0].Await(soon(t), s.Queue))
	for w := range 2 {
		require.Equal(t, []Held{{s, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}}}, n.stores[w].Held())
	}
	for w := 2; w < 4; w++ {
		require.NotEqual(t, s, n.stores[w].Held()[0].State)
	}
}

// TestStatesOutliveWorkersThatOnlyGive lets workers leave that only give, and were the only ones to hold some
// pieces. No further state is shared. One loss among the others must not lose the state, and all of them must
// have it if they are to.
func TestStatesOutliveWorkersThatOnlyGive(t *testing.T) {
	const all, sharing = 6, 3
	g := newGroup(t, all, nil)
	s := State{Queue: "means", Superstep: 4, Ended: true, Of: 13}
	g.shareAll(s)
	choices := Choose(g.held(0, 1, 2, 3, 4, 5))
	n := g.next([]int{0, 1, 2, 3, 4, 5})
	n.change = func(_ int, c *Config) { c.Sharing = sharing }
	n.start(choices)
	for w := range sharing {
		require.NoError(t, n.xs[w].Inherit(soon(t)))
	}
	for w := sharing; w < all; w++ {
		n.lose(w)
	}
	require.NoError(t, n.xs[0].Await(soon(t), s.Queue))
	for lost := range sharing {
		left := slices.DeleteFunc([]int{0, 1, 2}, func(w int) bool { return w == lost })
		require.Len(t, Choose(n.held(left...)), 1, "without worker %d", lost)
	}
	_, err := n.xs[0].Gather(soon(t), noQueue)
	require.NoError(t, err)
	for w := range sharing {
		require.Len(t, n.stores[w].Held(), 1)
		require.Len(t, n.stores[w].Held()[0].Pieces, s.Of, "worker %d", w)
		n.requireFetched(w, choices[0])
	}
}
