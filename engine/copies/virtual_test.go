package copies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// hub is a network within this process, for tests in virtual time.
type hub struct {
	mu        sync.Mutex
	listeners map[string]*hubListener
	// rate, if it is positive, is the number of bytes that a connection takes in a second.
	rate int
}

type hubListener struct {
	hub     *hub
	address string
	accepts chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *hubListener) Addr() net.Addr { return &net.UnixAddr{Name: l.address, Net: "unix"} }
func (l *hubListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }

func (l *hubListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepts:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (h *hub) Listen(context.Context, string) (net.Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == nil {
		h.listeners = make(map[string]*hubListener)
	}
	l := &hubListener{hub: h, address: fmt.Sprint("listener ", len(h.listeners)), accepts: make(chan net.Conn), closed: make(chan struct{})}
	h.listeners[l.address] = l
	return l, nil
}

func (h *hub) Dial(ctx context.Context, address string) (net.Conn, error) {
	h.mu.Lock()
	l := h.listeners[address]
	h.mu.Unlock()
	if l == nil {
		return nil, errors.New("no such address")
	}
	near, far := net.Pipe()
	select {
	case l.accepts <- far:
		return slow{near, h.rate}, nil
	case <-l.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// slow is a connection that takes some bytes in a second.
type slow struct {
	net.Conn
	rate int
}

func (s slow) Write(b []byte) (n int, err error) {
	if s.rate <= 0 {
		return s.Conn.Write(b)
	}
	for n < len(b) && err == nil {
		time.Sleep(time.Second)
		var k int
		k, err = s.Conn.Write(b[n:min(len(b), n+s.rate)])
		n += k
	}
	return n, err
}

// virtual runs a test in virtual time. newWorker returns a new port, and the configuration of a
// worker at it.
func virtual(t *testing.T, rate, workers int, test func(t *testing.T, ports []*peerlink.Port, config func(worker int) Config)) {
	synctest.Test(t, func(t *testing.T) {
		network := &hub{rate: rate}
		var ports []*peerlink.Port
		for range workers {
			p, err := peerlink.Listen(peerlink.Config{Job: "test", Net: network})
			require.NoError(t, err)
			defer p.Close()
			ports = append(ports, p)
		}
		test(t, ports, func(worker int) Config {
			return Config{
				Port: ports[worker], Where: func(to int) string { return ports[to].Address() },
				Worker: worker, Workers: workers, Attempt: 3, Store: &Store{},
			}
		})
	})
}

// mute opens an endpoint at a port that welcomes connections and then writes nothing. It reads only if
// reads is set. It returns the number of connections so far.
func mute(t *testing.T, p *peerlink.Port, reads bool) (endpoint *peerlink.Opened, connections func() int) {
	var mu sync.Mutex
	n := 0
	endpoint, err := p.Open(peerlink.Endpoint{Kind: peerlink.Copies, Epoch: 3, Serve: func(c *peerlink.Caller) error {
		mu.Lock()
		n++
		mu.Unlock()
		err := c.Welcome()
		if err == nil && reads {
			go io.Copy(io.Discard, c) // ends when the other side closes the connection
		}
		return err
	}})
	require.NoError(t, err)
	return endpoint, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// shareWith makes a worker share its pieces of a state.
func shareWith(x *Exchange, s State) {
	first, pieces := piecesOf(s, x.cfg.Worker, x.cfg.Workers)
	x.Share(s, first, pieces)
}

// TestSilentPeer requires that a worker which answers nothing is connected to again and again, about
// once in the time of the patience, whether it reads or not, that it delays neither Share nor Close,
// and that the state is settled when the worker answers at last.
func TestSilentPeer(t *testing.T) {
	for _, reads := range []bool{false, true} {
		virtual(t, 0, 2, func(t *testing.T, ports []*peerlink.Port, config func(worker int) Config) {
			endpoint, connections := mute(t, ports[1], reads)
			x, err := New(config(0))
			require.NoError(t, err)
			began := time.Now()
			s := State{Queue: "means", Superstep: 1, Of: 3}
			shareWith(x, s)
			require.Zero(t, time.Since(began))
			time.Sleep(10 * time.Minute)
			require.False(t, x.Settled("means"))
			require.GreaterOrEqual(t, connections(), 15)
			require.LessOrEqual(t, connections(), 21)
			endpoint.Close()
			other, err := New(config(1))
			require.NoError(t, err)
			shareWith(other, s)
			require.NoError(t, x.Await(soon(t), "means"))
			require.Len(t, Choose([][]Held{other.cfg.Store.Held()}), 1)
			other.Close()

			endpoint, _ = mute(t, ports[1], reads)
			s.Superstep = 2
			shareWith(x, s)
			time.Sleep(time.Second)
			closing := time.Now()
			x.Close()
			require.Zero(t, time.Since(closing))
			endpoint.Close()
		})
	}
}

// TestIdleConnection requires that a connection that has nothing to carry is used again, however
// long ago it was used.
func TestIdleConnection(t *testing.T) {
	virtual(t, 0, 2, func(t *testing.T, _ []*peerlink.Port, config func(worker int) Config) {
		var xs []*Exchange
		for w := range 2 {
			x, err := New(config(w))
			require.NoError(t, err)
			defer x.Close()
			xs = append(xs, x)
		}
		s := State{Queue: "means", Of: 3}
		var before map[string]bool
		for s.Superstep = 1; s.Superstep <= 3; s.Superstep++ {
			for _, x := range xs {
				shareWith(x, s)
			}
			require.NoError(t, xs[0].Await(soon(t), "means"))
			now := make(map[string]bool)
			for _, x := range xs {
				x.mu.Lock()
				for nc := range x.accepts {
					now[fmt.Sprintf("%p", nc)] = true
				}
				x.mu.Unlock()
			}
			require.Len(t, now, 2)
			require.True(t, before == nil || fmt.Sprint(before) == fmt.Sprint(now))
			before = now
			time.Sleep(24 * time.Hour)
		}
	})
}

// TestSlowPeer sends a piece over a connection that takes longer than the patience for it. As it
// goes on all the time, the connection must not be given up.
func TestSlowPeer(t *testing.T) {
	virtual(t, 20_000, 2, func(t *testing.T, _ []*peerlink.Port, config func(worker int) Config) {
		var xs []*Exchange
		var log bytes.Buffer
		logger := hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Debug})
		for w := range 2 {
			c := config(w)
			c.Logger = logger
			x, err := New(c)
			require.NoError(t, err)
			xs = append(xs, x)
		}
		s := State{Queue: "means", Superstep: 1, Of: 3}
		big := content(s, 0, 3<<20)
		began := time.Now()
		xs[0].Share(s, 0, func(yield func([]byte, error) bool) { _ = yield(big, nil) && yield(nil, nil) })
		xs[1].Share(s, 2, func(yield func([]byte, error) bool) { yield(nil, nil) })
		require.NoError(t, xs[0].Await(soon(t), "means"))
		require.Greater(t, time.Since(began), 2*time.Minute)
		require.Equal(t, big, xs[1].cfg.Store.Piece(s, 0))
		require.Empty(t, log.String(), "no connection may end")
		for _, x := range xs {
			x.Close()
		}
	})
}

// TestFetchFailures requires that a fetch ends with an error that names the worker, the queue and
// the superstep, if a holder is gone, answers nothing, is of another attempt, or does not hold the
// piece. If there is another holder, the fetch must succeed.
func TestFetchFailures(t *testing.T) {
	s := State{Queue: "means", Superstep: 7, Of: 1}
	piece := content(s, 0, 1000)
	for _, c := range []struct {
		name string
		one  func(t *testing.T, p *peerlink.Port, c Config) io.Closer // makes worker 1
		err  string
		soon bool // the fetch fails before its context ends
	}{
		{"gone", func(t *testing.T, p *peerlink.Port, _ Config) io.Closer {
			require.NoError(t, p.Close())
			return nil
		}, "connection refused", false},
		{"silent", func(t *testing.T, p *peerlink.Port, _ Config) io.Closer {
			endpoint, _ := mute(t, p, false)
			return closing(endpoint.Close)
		}, "i/o timeout", false},
		{"of the next attempt", func(t *testing.T, _ *peerlink.Port, c Config) io.Closer {
			c.Attempt++
			x, err := New(c)
			require.NoError(t, err)
			return closing(x.Close)
		}, "attempt 3 of the connection for copies is over: this is attempt 4", true},
		{"without the piece", func(t *testing.T, _ *peerlink.Port, c Config) io.Closer {
			x, err := New(c)
			require.NoError(t, err)
			return closing(x.Close)
		}, "piece 0: it does not hold what it said it holds", true},
	} {
		for _, another := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, another holder %v", c.name, another), func(t *testing.T) {
				virtual(t, 0, 3, func(t *testing.T, ports []*peerlink.Port, config func(worker int) Config) {
					x, err := New(config(0))
					require.NoError(t, err)
					defer x.Close()
					address := ports[1].Address()
					if end := c.one(t, ports[1], config(1)); end != nil {
						defer end.Close()
					}
					holder, err := New(config(2))
					require.NoError(t, err)
					defer holder.Close()
					require.NoError(t, holder.cfg.Store.Put(s, 0, piece))

					choice := Choice{s, [][]int{{1}}}
					if another {
						choice.Holders[0] = []int{1, 2}
					}
					ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Second, errors.New("the attempt is over"))
					defer cancel()
					got, err := x.Fetch(ctx, choice, []bool{true})
					if another {
						require.NoError(t, err)
						require.Equal(t, [][]byte{piece}, got)
						return
					}
					require.ErrorContains(t, err, fmt.Sprintf(`fetch the state of queue "means" after superstep 7 from worker 1 (%s): `, address))
					require.ErrorContains(t, err, c.err)
					require.Equal(t, c.soon, ctx.Err() == nil)
				})
			})
		}
	}
}

// closing is a function as an io.Closer.
type closing func()

func (c closing) Close() error { c(); return nil }

// TestFetchEnds requires that a fetch ends with the Exchange and with its context, and that it refuses
// a choice that is not one.
func TestFetchEnds(t *testing.T) {
	virtual(t, 0, 2, func(t *testing.T, ports []*peerlink.Port, config func(worker int) Config) {
		endpoint, _ := mute(t, ports[1], false)
		defer endpoint.Close()
		x, err := New(config(0))
		require.NoError(t, err)
		s := State{Queue: "means", Superstep: 7, Of: 2}
		require.NoError(t, x.cfg.Store.Put(s, 0, []byte("held")))
		choice := Choice{s, [][]int{{0}, {1}}}

		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("the attempt is over")) })
		_, err = x.Fetch(ctx, choice, nil)
		require.ErrorContains(t, err, `fetch the state of queue "means" after superstep 7 from worker 1`)
		require.ErrorContains(t, err, "the attempt is over")

		got, err := x.Fetch(t.Context(), choice, []bool{true, false})
		require.NoError(t, err)
		require.Equal(t, [][]byte{[]byte("held"), nil}, got)

		for _, wrong := range []Choice{{s, nil}, {s, [][]int{{0}, {}}}, {s, [][]int{{0}, {2}}}, {s, [][]int{{-1}, {0}}}, {State{}, nil}} {
			_, err = x.Fetch(t.Context(), wrong, nil)
			require.Error(t, err)
		}
		_, err = x.Fetch(t.Context(), choice, []bool{true})
		require.ErrorContains(t, err, "1 pieces, where it has 2")
		_, err = x.Fetch(t.Context(), Choice{s, [][]int{{0}, {0}}}, nil)
		require.ErrorContains(t, err, "worker 0 should hold piece 1 itself")

		time.AfterFunc(time.Second, x.Close)
		_, err = x.Fetch(t.Context(), choice, nil)
		require.ErrorIs(t, err, errClosed)
		_, err = x.Fetch(t.Context(), choice, nil)
		require.ErrorIs(t, err, errClosed)
	})
}

// TestLaterAttempt requires that an Exchange of an attempt that is over stops to connect, and says so
// once.
func TestLaterAttempt(t *testing.T) {
	virtual(t, 0, 2, func(t *testing.T, _ []*peerlink.Port, config func(worker int) Config) {
		var log bytes.Buffer
		c := config(0)
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
		x, err := New(c)
		require.NoError(t, err)
		later := config(1)
		later.Attempt++
		other, err := New(later)
		require.NoError(t, err)
		for superstep := 1; superstep <= 3; superstep++ {
			shareWith(x, State{Queue: "means", Superstep: superstep, Of: 3})
			time.Sleep(time.Minute)
		}
		require.False(t, x.Settled("means"))
		other.Close()
		x.Close()
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("the worker takes no copies")))
		require.Contains(t, log.String(), "attempt 3 of the connection for copies is over: this is attempt 4")
	})
}
