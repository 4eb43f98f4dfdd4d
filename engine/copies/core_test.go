package copies

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// network runs the cores of all workers in one goroutine. Messages between two workers are in order,
// as on a connection, but may come twice. All else happens in random order.
type network struct {
	t       *testing.T
	draw    *rand.Rand
	workers int
	cores   []*Core
	stores  []*Store
	lost    []bool
	sent    [][][]Message // by sender and receiver: not acknowledged
	shares  [][]step      // by worker: what it still does to share states
	size    func(s State, number int) int
	check   func() // called after each step; may be nil
}

// step is something that a worker does to share a state. If the state has begun, the step waits as long as
// the state does.
type step struct {
	State
	do func()
}

func newNetwork(t *testing.T, draw *rand.Rand, workers, copies int) *network {
	n := &network{t: t, draw: draw, workers: workers, lost: make([]bool, workers), shares: make([][]step, workers), size: func(State, int) int { return 3 }}
	for w := range workers {
		n.stores = append(n.stores, &Store{})
		n.sent = append(n.sent, make([][]Message, workers))
		n.cores = append(n.cores, NewCore(w, workers, copies, n.stores[w], func(to int, m Message) {
			require.NotEqual(t, w, to)
			n.sent[w][to] = append(n.sent[w][to], m)
		}, func() {}))
	}
	return n
}

// share makes a worker share a state, piece by piece. If void is set, its last piece fails.
func (n *network) share(w int, s State, void bool) {
	c, lo, hi := n.cores[w], 0, 0
	lo, hi = numbersOf(s, w, n.workers)
	steps := []step{{do: func() { c.Begin(s) }}}
	for i := lo; i < hi && !(void && i == hi-1); i++ {
		steps = append(steps, step{s, func() {
			require.NoError(n.t, n.stores[w].Put(s, i, content(s, i, n.size(s, i))))
			c.Share(s, i)
		}})
	}
	steps = append(steps, step{s, func() { c.End(s, void) }})
	n.shares[w] = append(n.shares[w], steps...)
}

// step does one thing that may happen next. It returns false if there is none.
func (n *network) step() bool {
	var can []func()
	for w := range n.workers {
		if n.lost[w] {
			continue
		}
		if len(n.shares[w]) > 0 && !n.cores[w].Waits(n.shares[w][0].State) {
			can = append(can, func() {
				next := n.shares[w][0]
				n.shares[w] = n.shares[w][1:]
				next.do()
			})
		}
		for to := range n.workers {
			if len(n.sent[w][to]) > 0 && !n.lost[to] {
				can = append(can, func() { n.deliver(w, to) })
			}
		}
	}
	if len(can) == 0 {
		return false
	}
	can[n.draw.IntN(len(can))]()
	if n.check != nil {
		n.check()
	}
	return true
}

// deliver delivers the oldest message from one worker to another. Sometimes its acknowledgement is
// lost, so that it comes once more.
func (n *network) deliver(from, to int) {
	m := n.sent[from][to][0]
	if m.kind != kindPiece {
		n.cores[to].Received(from, m)
	} else if data := n.stores[from].Piece(m.State, m.piece); data != nil && n.stores[to].wants(m.State, m.piece) {
		p := n.stores[to].take(m.Queue, len(data))
		p.data = append(p.data, data...)
		n.stores[to].put(m.State, m.piece, p)
	}
	if n.draw.IntN(4) > 0 {
		n.sent[from][to] = n.sent[from][to][1:]
		n.cores[from].Acknowledged(m)
	}
}

// choose returns the state of the queue from which the workers would continue that are not lost.
func (n *network) choose(lost []int) State {
	var held [][]Held
	for w := range n.workers {
		if !slices.Contains(lost, w) {
			held = append(held, n.stores[w].Held())
		}
	}
	for _, c := range Choose(held) {
		return c.State
	}
	return State{}
}

// TestAnyMoment shares states in random interleavings. Now and then the state of a worker is void. At
// each moment, whichever workers are lost, up to the number of copies, the newest state that was
// settled must be left, or a newer one. No Store may hold pieces of more than three states.
func TestAnyMoment(t *testing.T) {
	for seed := range uint64(testsize.Of(testsize.Raced(400, 100), 5_000)) {
		draw := rand.New(rand.NewPCG(seed, 40))
		workers := 2 + draw.IntN(4)
		copies := 1 + draw.IntN(min(3, workers-1))
		n := newNetwork(t, draw, workers, copies)
		s := State{Queue: "means", Of: 1 + draw.IntN(2*workers)}
		var settled State
		for s.Superstep = 1; s.Superstep <= 4; s.Superstep++ {
			before := s
			void := -1
			if draw.IntN(4) == 0 {
				void = draw.IntN(workers)
			}
			for w := range workers {
				n.share(w, s, w == void)
			}
			if s.Superstep == 4 {
				s.Superstep, s.Ended = 5, true // which does not wait for the one before
				for w := range workers {
					n.share(w, s, false)
				}
			}
			for n.step() {
				for lost := range subsets(workers, copies) {
					left := n.choose(lost)
					require.GreaterOrEqual(t, left.compare(settled), 0, "seed %d: %s is left without %v, and %s was settled", seed, left, lost, settled)
				}
				for w := range workers {
					require.LessOrEqual(t, len(n.stores[w].Held()), maxStates, "seed %d", seed)
				}
			}
			require.False(t, n.cores[0].UnderWay("means"), "seed %d: %s must be settled", seed, s)
			switch {
			case s.Ended:
				settled = s
			case void < 0:
				settled = before
			}
			for w := range workers {
				for _, h := range n.stores[w].Held() {
					require.Equal(t, settled, h.State, "seed %d: worker %d", seed, w)
				}
				require.Empty(t, n.cores[w].own)
			}
		}
	}
}

// TestLossWhileSharing loses a worker at a random moment while a state is shared. What then happens
// must not remove the state before, unless the new one is complete.
func TestLossWhileSharing(t *testing.T) {
	newer := 0
	for seed := range uint64(testsize.Of(testsize.Raced(2000, 400), 100_000)) {
		draw := rand.New(rand.NewPCG(seed, 41))
		workers := 2 + draw.IntN(4)
		copies := 1 + draw.IntN(min(3, workers-1))
		n := newNetwork(t, draw, workers, copies)
		s := State{Queue: "means", Of: 1 + draw.IntN(2*workers)}
		for s.Superstep = 1; s.Superstep <= 2; s.Superstep++ {
			for w := range workers {
				n.share(w, s, false)
			}
			for s.Superstep == 1 && n.step() {
			}
		}
		for range draw.IntN(30) {
			n.step()
		}
		lost := draw.Perm(workers)[:1+draw.IntN(copies)]
		for _, w := range lost {
			n.lost[w] = true
		}
		for n.step() {
		}
		left := n.choose(lost)
		require.GreaterOrEqual(t, left.Superstep, 1, "seed %d: nothing is left without %v of %d", seed, lost, workers)
		newer += left.Superstep - 1
	}
	require.NotZero(t, newer, "some losses must come late enough")
}

// TestTargets requires that copies go to the next workers, to no worker twice, and never to the
// sender.
func TestTargets(t *testing.T) {
	for workers := 1; workers <= 5; workers++ {
		for copies := 1; copies <= 7; copies++ {
			for w := range workers {
				var to []string
				c := NewCore(w, workers, copies, &Store{}, func(w int, m Message) { to = append(to, fmt.Sprint(w, m.kind, m.piece)) }, func() {})
				s := State{Queue: "means", Superstep: 1, Of: 9}
				require.True(t, c.Begin(s))
				c.Share(s, 7)
				var want []string
				for next := w + 1; next < w+workers && next <= w+copies; next++ {
					want = append(want, fmt.Sprint(next%workers, kindPiece, 7))
				}
				require.Equal(t, want, to)
			}
		}
	}
}
