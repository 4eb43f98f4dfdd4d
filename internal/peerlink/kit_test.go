package peerlink

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testSecret = []byte("known to all that are of the test")

// patience bounds waits for events that normally happen soon.
const patience = 4 * time.Minute

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("the test waited too long"))
	t.Cleanup(cancel)
	return ctx
}

// listen returns a port that is closed when the test ends.
func listen(t testing.TB, change func(c *Config)) *Port {
	t.Helper()
	cfg := Config{Job: "test", Secret: testSecret}
	if change != nil {
		change(&cfg)
	}
	p, err := Listen(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// open opens an endpoint that admits every connection and sends it to the returned channel.
func open(t testing.TB, p *Port, d Endpoint) (*Opened, chan *Caller) {
	t.Helper()
	came := make(chan *Caller, 100)
	d.Serve = func(c *Caller) error {
		if err := c.Welcome(); err != nil {
			return err
		}
		t.Cleanup(func() { c.Close() })
		came <- c
		return nil
	}
	o, err := p.Open(d)
	require.NoError(t, err)
	t.Cleanup(o.Close)
	return o, came
}

// dial connects the port from to the port to; from is the dialer. The connection is closed when
// the test ends.
func dial(t testing.TB, from, to *Port, h Hello) (net.Conn, error) {
	nc, err := from.Dial(soon(t), to.Address(), h)
	if nc != nil {
		t.Cleanup(func() { nc.Close() })
	}
	return nc, err
}

// raw returns a TCP connection to a port, without a handshake.
func raw(t testing.TB, p *Port) net.Conn {
	nc, err := net.Dial("tcp", p.Address())
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return nc
}

// same requires that a and b are the two ends of one connection.
func same(t testing.TB, a, b net.Conn) {
	t.Helper()
	go a.Write([]byte("to and"))
	got := make([]byte, 6)
	_, err := io.ReadFull(b, got)
	require.NoError(t, err)
	require.Equal(t, "to and", string(got))
	go b.Write([]byte("fro"))
	_, err = io.ReadFull(a, got[:3])
	require.NoError(t, err)
	require.Equal(t, "fro", string(got[:3]))
}

// pipes is a Net with one listener, within this process, for tests in virtual time.
type pipes struct {
	accepts chan net.Conn
	closed  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (n *pipes) Listen(context.Context, string) (net.Listener, error) { return n, nil }
func (n *pipes) Close() error                                         { close(n.closed); return nil }
func (n *pipes) Addr() net.Addr                                       { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (n *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-n.accepts:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *pipes) Dial(ctx context.Context, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case n.accepts <- far:
		return near, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
