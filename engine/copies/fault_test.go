package copies

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/transport/middlebox"
)

// behind returns a group whose workers dial each other at the addresses that proxy returns.
func behind(t testing.TB, n int, proxy func(worker int, address string) string, change func(worker int, c *Config)) *group {
	g := &group{t: t, change: change}
	for w := range n {
		g.add(&Store{})
		g.addresses[w] = proxy(w, g.ports[w].Address())
	}
	g.start(nil)
	return g
}

// TestDamagedConnections damages bytes of a connection, by seed: it flips, loses, repeats and
// exchanges them, and cuts connections. All states must be settled all the same, and every piece must
// have its bytes, also if it is fetched. Bytes that are lost in a handshake cost its time limit, which
// is ten seconds; none of the seeds of a normal run does that.
func TestDamagedConnections(t *testing.T) {
	const workers = 3
	struck := 0
	for seed := range uint64(testsize.Of(testsize.Raced(60, 20), 300)) {
		box := middlebox.New(middlebox.Draw(seed, 8, 6000))
		g := behind(t, workers, func(_ int, address string) string {
			a, err := box.Before(address)
			require.NoError(t, err)
			return a
		}, func(_ int, c *Config) { c.Patience = 200 * time.Millisecond })
		s := State{Queue: "means", Of: 10}
		for s.Superstep = 1; s.Superstep <= 3; s.Superstep++ {
			g.shareAll(s)
			choices := Choose(g.held(0, 1, 2))
			require.Len(t, choices, 1)
			require.Equal(t, s, choices[0].State)
			for w := range workers {
				g.requireFetched(w, choices[0])
				for _, h := range g.stores[w].Held() {
					for _, i := range h.Pieces {
						require.Equal(t, content(s, i, sizeOf(s, i)), g.stores[w].Piece(s, i), "seed %d", seed)
					}
				}
			}
		}
		for _, x := range g.xs {
			x.Close()
		}
		box.Close()
		if box.Struck() {
			struck++
		}
	}
	require.NotZero(t, struck)
	t.Logf("%d faults have struck", struck)
}

// TestDamagedHandshakes flips bits in the handshake of the first connection. Some of them look like
// another protocol. The worker must connect again all the same.
func TestDamagedHandshakes(t *testing.T) {
	for at := range int64(12) {
		for _, back := range []bool{false, true} {
			box := middlebox.New(middlebox.Fault{Kind: middlebox.Flip, At: at, Back: back, Length: 1, Bit: 4})
			g := behind(t, 2, func(_ int, address string) string {
				a, err := box.Before(address)
				require.NoError(t, err)
				return a
			}, nil)
			s := State{Queue: "means", Superstep: 1, Of: 3}
			g.shareAll(s)
			require.True(t, box.Struck())
			require.Len(t, Choose(g.held(1)), 1)
			for _, x := range g.xs {
				x.Close()
			}
			box.Close()
		}
	}
}

// TestWorkerLostWhileSharing loses a worker at a random piece of a random worker while all share a
// state. The state before must be left, or the new one. The others must neither wait for the lost
// worker in Share, nor in Close.
func TestWorkerLostWhileSharing(t *testing.T) {
	for seed := range uint64(testsize.Of(testsize.Raced(60, 20), 2000)) {
		draw := rand.New(rand.NewPCG(seed, 42))
		workers := 2 + draw.IntN(4)
		copies := 1 + draw.IntN(min(3, workers-1))
		g := newGroup(t, workers, func(_ int, c *Config) { c.Copies = copies })
		s := State{Queue: "means", Superstep: 1, Of: 1 + 3*workers}
		g.shareAll(s)

		next := State{Queue: "means", Superstep: 2, Of: s.Of}
		at, after := draw.IntN(workers), 1+draw.IntN(4)
		now := make(chan struct{})
		for _, w := range draw.Perm(workers) {
			first, pieces := piecesOf(next, w, workers)
			g.xs[w].Share(next, first, func(yield func([]byte, error) bool) {
				n := 0
				for data, err := range pieces {
					if !yield(data, err) {
						return
					}
					if n++; w == at && n == min(after, 3) {
						close(now)
					}
				}
			})
		}
		<-now
		lost := draw.Perm(workers)[:1+draw.IntN(copies)]
		for _, w := range lost {
			g.lose(w)
		}
		choices := Choose(g.held(g.others(lost...)...))
		require.NotEmpty(t, choices, "seed %d: nothing is left without %v of %d", seed, lost, workers)
		for _, x := range g.xs {
			if x != nil {
				x.Close()
			}
		}
		choices = Choose(g.held(g.others(lost...)...))
		require.NotEmpty(t, choices, "seed %d: nothing is left without %v of %d", seed, lost, workers)
	}
}

// TestNetworkThatFailsForSomeTime cuts all connections, lets new ones fail, and then lets them pass.
// The state must then be settled.
func TestNetworkThatFailsForSomeTime(t *testing.T) {
	var valves []*middlebox.Valve
	g := behind(t, 3, func(_ int, address string) string {
		v, err := middlebox.NewValve(address)
		require.NoError(t, err)
		t.Cleanup(v.Close)
		valves = append(valves, v)
		return v.Address()
	}, nil)
	s := State{Queue: "means", Superstep: 1, Of: 7}
	g.shareAll(s)
	for _, v := range valves {
		v.Cut()
	}
	s.Superstep = 2
	for w := range g.xs {
		g.share(w, s)
	}
	require.False(t, g.xs[0].Settled("means"))
	for _, v := range valves {
		v.Open()
	}
	require.NoError(t, g.xs[0].Await(soon(t), "means"))
	for lost := range 3 {
		require.Equal(t, s, Choose(g.held(g.others(lost)...))[0].State)
	}
}

// TestCloseWhileSending closes Exchanges while a large piece waits for a peer that takes no bytes.
func TestCloseWhileSending(t *testing.T) {
	valves := make([]*middlebox.Valve, 2)
	g := behind(t, 2, func(w int, address string) string {
		v, err := middlebox.NewValve(address)
		require.NoError(t, err)
		t.Cleanup(v.Close)
		valves[w] = v
		return v.Address()
	}, nil)
	s := State{Queue: "means", Superstep: 1, Of: 3}
	g.shareAll(s)
	for _, v := range valves {
		v.Hold()
	}
	s.Superstep = 2
	big := make([]byte, 32<<20)
	yielded := make(chan struct{})
	g.xs[0].Share(s, 0, func(yield func([]byte, error) bool) {
		if yield(big, nil) {
			close(yielded)
		}
	})
	<-yielded
	for _, x := range g.xs {
		x.Close()
	}
	require.Equal(t, 1, Choose(g.held(0, 1))[0].Superstep)
}

// TestPiecesAreNotTakenAfterClose requires that Close ends the sharing between two pieces.
func TestPiecesAreNotTakenAfterClose(t *testing.T) {
	g := newGroup(t, 2, nil)
	s := State{Queue: "means", Superstep: 1, Of: 1000}
	begun, closing := make(chan struct{}), make(chan struct{})
	n := 0
	g.xs[0].Share(s, 0, func(yield func([]byte, error) bool) {
		close(begun)
		<-closing
		for ; yield(nil, nil); n++ {
			if n > 500 {
				yield(nil, errors.New("too many pieces"))
				return
			}
		}
	})
	<-begun
	go func() {
		<-g.xs[0].ctx.Done()
		close(closing)
	}()
	g.xs[0].Close()
	require.Zero(t, n)
}
