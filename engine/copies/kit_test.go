package copies

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits for events that normally happen soon.
const patience = 4 * time.Minute

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("the test waited too long"))
	t.Cleanup(cancel)
	return ctx
}

// content returns the bytes of a piece, which depend on the arguments only.
func content(s State, number, size int) []byte {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %d", s, number)
	r := rand.NewChaCha8([32]byte(h.Sum(slices.Repeat([]byte{7}, 24))))
	b := make([]byte, size)
	r.Read(b)
	return b
}

// sizeOf returns the size of a piece, which differs between pieces and supersteps. Some are empty.
func sizeOf(s State, number int) int {
	return (s.Superstep*31 + number*977) % 5 * (300 + 7*number)
}

// numbersOf returns the numbers of the pieces of a state that a worker has: the first, and the one
// after the last.
func numbersOf(s State, worker, workers int) (lo, hi int) {
	parts := s.Of - 1
	lo, hi = 1+parts*worker/workers, 1+parts*(worker+1)/workers
	if worker == 0 {
		lo = 0
	}
	return lo, hi
}

// piecesOf yields the pieces of a state that a worker has. It reuses the memory of a piece, as
// callers of Share do.
func piecesOf(s State, worker, workers int) (first int, pieces iter.Seq2[[]byte, error]) {
	lo, hi := numbersOf(s, worker, workers)
	return lo, func(yield func([]byte, error) bool) {
		var b []byte
		for i := lo; i < hi; i++ {
			b = append(b[:0], content(s, i, sizeOf(s, i))...)
			if !yield(b, nil) {
				return
			}
			clear(b)
		}
	}
}

// group has the workers of an attempt, in one process.
type group struct {
	t         testing.TB
	attempt   uint32
	change    func(worker int, c *Config)
	ports     []*peerlink.Port
	addresses []string // where the others dial each worker
	stores    []*Store
	xs        []*Exchange // nil for a lost worker
}

// newGroup starts n workers, with empty Stores and without copies from before.
func newGroup(t testing.TB, n int, change func(worker int, c *Config)) *group {
	g := &group{t: t, change: change}
	for range n {
		g.add(&Store{})
	}
	g.start(nil)
	return g
}

// add adds a worker that is not started yet.
func (g *group) add(s *Store) {
	p, err := peerlink.Listen(peerlink.Config{Job: "test", Secret: []byte("known to all that are of the test")})
	require.NoError(g.t, err)
	g.t.Cleanup(func() { require.NoError(g.t, p.Close()) })
	g.ports, g.addresses, g.stores, g.xs = append(g.ports, p), append(g.addresses, p.Address()), append(g.stores, s), append(g.xs, nil)
}

// start starts an attempt with the workers of the group.
func (g *group) start(from []Choice) {
	for w := range g.xs {
		c := Config{
			Port: g.ports[w], Where: func(to int) string { return g.addresses[to] }, Worker: w, Workers: len(g.xs),
			Attempt: g.attempt, Copies: 1, Store: g.stores[w], From: from, Logger: hclog.NewNullLogger(),
		}
		if g.change != nil {
			g.change(w, &c)
		}
		x, err := New(c)
		require.NoError(g.t, err)
		g.xs[w] = x
		g.t.Cleanup(x.Close)
	}
}

// share makes a worker share its pieces of a state.
func (g *group) share(worker int, s State) {
	first, pieces := piecesOf(s, worker, len(g.xs))
	g.xs[worker].Share(s, first, pieces)
}

// shareAll makes all workers share a state, and waits until it is settled.
func (g *group) shareAll(s State) {
	for w := range g.xs {
		g.share(w, s)
	}
	require.NoError(g.t, g.xs[0].Await(soon(g.t), s.Queue))
}

// lose ends a worker with all that it holds.
func (g *group) lose(worker int) {
	g.xs[worker].Close()
	g.xs[worker] = nil
	require.NoError(g.t, g.ports[worker].Close())
}

// held returns what each of the given workers holds.
func (g *group) held(workers ...int) (all [][]Held) {
	for _, w := range workers {
		all = append(all, g.stores[w].Held())
	}
	return all
}

// others returns the numbers of the workers that are not among the lost ones.
func (g *group) others(lost ...int) (left []int) {
	for w := range g.xs {
		if !slices.Contains(lost, w) {
			left = append(left, w)
		}
	}
	return left
}

// next returns a group for the next attempt. It has the Stores of some workers, and new workers with
// empty Stores in the place of the others. The workers of the old group are ended.
func (g *group) next(survivors []int) *group {
	for _, x := range g.xs {
		if x != nil {
			x.Close()
		}
	}
	n := &group{t: g.t, attempt: g.attempt + 1, change: g.change}
	for w := range g.xs {
		if slices.Contains(survivors, w) {
			n.add(g.stores[w])
		} else {
			n.add(&Store{})
		}
	}
	return n
}

// requireFetched requires that a worker gets all pieces of a choice.
func (g *group) requireFetched(worker int, c Choice) {
	got, err := g.xs[worker].Fetch(soon(g.t), c, nil)
	require.NoError(g.t, err)
	require.Len(g.t, got, c.Of)
	for i, piece := range got {
		require.Equal(g.t, content(c.State, i, sizeOf(c.State, i)), piece, "%s, piece %d", c.State, i)
		require.NotNil(g.t, piece)
	}
}

// subsets yields all subsets of 0..n-1 with the given number of elements.
func subsets(n, size int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for bits := range 1 << n {
			var set []int
			for i := range n {
				if bits>>i&1 == 1 {
					set = append(set, i)
				}
			}
			if len(set) == size && !yield(set) {
				return
			}
		}
	}
}

// Size returns the number of bytes of the pieces.
func (s *Store) Size() (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		for _, h := range q.states {
			for _, p := range h.pieces {
				bytes += int64(len(p.data))
			}
		}
	}
	return bytes
}
