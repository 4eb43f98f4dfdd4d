package peerlink

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ending is a TCP network that ends the context of a dial just before the first deadline of the
// connection is set.
type ending struct {
	TCP
	end context.CancelFunc
}

func (e ending) Dial(ctx context.Context, address string) (net.Conn, error) {
	nc, err := e.TCP.Dial(ctx, address)
	return &endingConn{Conn: nc, end: e.end, over: make(chan struct{})}, err
}

type endingConn struct {
	net.Conn
	end  context.CancelFunc
	over chan struct{} // closed when Dial has set a deadline in the past because the context ended
}

func (c *endingConn) SetDeadline(t time.Time) error {
	if end := c.end; end != nil && t.After(time.Now()) {
		c.end = nil
		end()
		<-c.over
	} else if end == nil && t.Before(time.Now()) && !t.IsZero() {
		err := c.Conn.SetDeadline(t)
		select {
		case <-c.over:
		default:
			close(c.over)
		}
		return err
	}
	return c.Conn.SetDeadline(t)
}

// TestDialEndsWithItsContext requires that Dial does not wait for an answer after its context
// has ended, even if the context ends just before a deadline is set.
func TestDialEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the system establishes connections, but nobody answers a hello
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(soon(t))
	p := listen(t, func(c *Config) { c.Net = ending{TCP{}, cancel} })
	began := time.Now()
	_, err = p.Dial(ctx, l.Addr().String(), Hello{Kind: Control, Scope: "g"})
	require.Error(t, err)
	require.Less(t, time.Since(began), handshakeTimeout)
}
