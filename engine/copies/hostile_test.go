package copies

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/tlstest"
)

// TestTLS shares states over TLS, fetches them, and loses a worker.
func TestTLS(t *testing.T) {
	c := tlstest.NewConfig(t)
	g := &group{t: t}
	for w := range 3 {
		g.add(&Store{})
		require.NoError(t, g.ports[w].Close())
		p, err := peerlink.Listen(peerlink.Config{Job: "test", TLS: c})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close()) })
		g.ports[w], g.addresses[w] = p, p.Address()
	}
	g.start(nil)
	s := State{Queue: "means", Of: 7}
	for s.Superstep = 1; s.Superstep <= 3; s.Superstep++ {
		g.shareAll(s)
		for w := range 3 {
			g.requireFetched(w, Choose(g.held(0, 1, 2))[0])
		}
	}
	g.lose(1)
	require.Equal(t, 3, Choose(g.held(0, 2))[0].Superstep)
}

// hello returns a hello of worker 1 to worker 0, of two.
func hello(change func(h *peerlink.Hello)) peerlink.Hello {
	h := peerlink.Hello{Kind: peerlink.Copies, Epoch: 3, From: 1, Size: 2, Sums: true}
	if change != nil {
		change(&h)
	}
	return h
}

// TestHellosThatAreRefused requires that a connection of a worker that does not belong to the attempt
// is refused, and that the refusal says why.
func TestHellosThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(h *peerlink.Hello)
		err    string
	}{
		{"another worker", func(h *peerlink.Hello) { h.To = 1 }, "this is worker 0, not 1"},
		{"another number of workers", func(h *peerlink.Hello) { h.Size = 3 }, "worker 1 of 3 has nothing to do with worker 0 of 2"},
		{"no such worker", func(h *peerlink.Hello) { h.From = 2 }, "worker 2 of 2 has nothing to do with worker 0 of 2"},
		{"itself", func(h *peerlink.Hello) { h.From = 0 }, "worker 0 of 2 has nothing to do with worker 0 of 2"},
		{"channel", func(h *peerlink.Hello) { h.Channel = 2 }, "channel 2 of a connection for copies has no meaning"},
		{"attempt", func(h *peerlink.Hello) { h.Epoch = 2 }, "attempt 2 of the connection for copies is over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, 0, 2, func(t *testing.T, ports []*peerlink.Port, config func(worker int) Config) {
				x, err := New(config(0))
				require.NoError(t, err)
				defer x.Close()
				_, err = ports[1].Dial(t.Context(), ports[0].Address(), hello(c.change))
				require.ErrorIs(t, err, peerlink.ErrRefused)
				require.ErrorContains(t, err, c.err)
			})
		})
	}
}

// TestNewConnectionReplacesOld requires that only one connection for messages from the same worker
// stays open, but any number of connections for fetches.
func TestNewConnectionReplacesOld(t *testing.T) {
	virtual(t, 0, 2, func(t *testing.T, ports []*peerlink.Port, config func(worker int) Config) {
		x, err := New(config(0))
		require.NoError(t, err)
		dial := func(channel uint32) net.Conn {
			nc, err := ports[1].Dial(t.Context(), ports[0].Address(), hello(func(h *peerlink.Hello) { h.Channel = channel }))
			require.NoError(t, err)
			return nc
		}
		old, fetches := dial(channelLink), []net.Conn{dial(channelFetch), dial(channelFetch)}
		recent := dial(channelLink)
		_, err = old.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		for _, nc := range append(fetches, recent) {
			w := newFrameWriter(nc, func() {})
			require.NoError(t, w.write(Message{kind: kindReport, State: State{"means", 1, false, 3}}, nil, 0))
			require.NoError(t, w.flush())
			answer, err := newFrameReader(nc, nil).next()
			require.NoError(t, err)
			require.Equal(t, kindReceived, answer.kind)
		}
		x.Close()
	})
}

// TestHostileDialers sends frames that have no place where they come. The connection must end without
// an answer, and a state must be settled afterwards.
func TestHostileDialers(t *testing.T) {
	s := State{Queue: "means", Superstep: 1, Of: 3}
	for _, c := range []struct {
		name string
		to   int // the worker that is attacked
		Message
		body []byte
		err  string
	}{
		{"a report to worker 1", 1, Message{kind: kindReport, State: s}, nil, "a report from worker 0 to worker 1"},
		{"a request to worker 0 to gather", 0, Message{kind: kindGather, State: s}, nil, "a request to gather from worker 1 to worker 0"},
		{"an outcome to worker 0", 0, Message{kind: kindOutcome, State: s}, nil, "an outcome from worker 1 to worker 0"},
		{"an acknowledgement", 0, Message{kind: kindReceived}, nil, "which answers nothing"},
		{"word of a missing piece", 0, Message{kind: kindMissing, State: s}, nil, "which answers nothing"},
		{"a fetch of no piece", 0, Message{kind: kindFetch, State: s}, []byte{3}, "of no piece"},
		{"a fetch that ends early", 0, Message{kind: kindFetch, State: s}, []byte{0x80}, "of no piece"},
		{"garbage", 0, Message{}, bytes.Repeat([]byte("x"), 100), "wrong checksum"},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, 0, 2, func(t *testing.T, ports []*peerlink.Port, config func(worker int) Config) {
				var log bytes.Buffer
				attacked := config(c.to)
				attacked.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
				x, err := New(attacked)
				require.NoError(t, err)
				nc, err := ports[1-c.to].Dial(t.Context(), ports[c.to].Address(), hello(func(h *peerlink.Hello) {
					h.From, h.To = uint32(1-c.to), uint32(c.to)
				}))
				require.NoError(t, err)
				if c.kind == 0 {
					go nc.Write(c.body)
				} else {
					w := newFrameWriter(nc, func() {})
					require.NoError(t, w.write(c.Message, c.body, checksum.Of(c.body)))
					require.NoError(t, w.flush())
				}
				answer, err := io.ReadAll(nc)
				require.NoError(t, err)
				require.Empty(t, answer)
				nc.Close()

				other, err := New(config(1 - c.to))
				require.NoError(t, err)
				shareWith(x, s)
				shareWith(other, s)
				first := x
				if c.to != 0 {
					first = other
				}
				require.NoError(t, first.Await(soon(t), "means"))
				x.Close()
				other.Close()
				require.Contains(t, log.String(), c.err)
			})
		})
	}
}

// TestHostileListeners answers a message with frames that are no acknowledgement of it. The dialer
// must end the connection, say why, and connect again.
func TestHostileListeners(t *testing.T) {
	s := State{Queue: "means", Superstep: 1, Of: 3}
	received := Message{kind: kindReceived}
	for _, c := range []struct {
		name    string
		answers []Message
		all     bool // both pieces are acknowledged, so that nothing is left to be sent
	}{
		{"a piece", []Message{{kind: kindPiece, State: s}}, false},
		{"a report", []Message{{kind: kindReport, State: s}}, false},
		{"acknowledgements of nothing", []Message{received, received, received, received}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, 0, 2, func(t *testing.T, ports []*peerlink.Port, config func(worker int) Config) {
				var connections []net.Conn
				endpoint, err := ports[1].Open(peerlink.Endpoint{Kind: peerlink.Copies, Epoch: 3, Serve: func(caller *peerlink.Caller) error {
					if err := caller.Welcome(); err != nil {
						return err
					}
					connections = append(connections, caller.Conn)
					caller.Read(make([]byte, 1))
					w := newFrameWriter(caller, func() {})
					for _, m := range c.answers {
						_ = w.write(m, nil, 0)
					}
					go w.flush()
					io.Copy(io.Discard, caller)
					return caller.Close()
				}})
				require.NoError(t, err)
				x, err := New(config(0))
				require.NoError(t, err)
				shareWith(x, s)
				time.Sleep(5 * time.Second)
				require.False(t, x.Settled("means"), "worker 1 has not reported")
				x.Close()
				endpoint.Close()
				require.NotEmpty(t, connections)
				require.True(t, c.all || len(connections) > 3, "%d connections", len(connections))
			})
		})
	}
}
