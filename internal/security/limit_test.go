package security

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// dialLimited dials a listener.
func dialLimited(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestLimitListener opens one connection more than the limit. The last connection must be
// accepted only when another connection is closed. Closing a connection twice must not admit a
// further connection.
func TestLimitListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	const limit = 3
	l := LimitListener(inner, limit)
	var server sync.WaitGroup
	accepted := make(chan net.Conn, 2*limit)
	var last error
	server.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				last = err
				return
			}
			accepted <- c
		}
	})
	var let []net.Conn
	for range limit {
		dialLimited(t, l)
		let = append(let, <-accepted)
	}
	waits := dialLimited(t, l)
	_, err = waits.Write([]byte("hello"))
	require.NoError(t, err, "the connection must be in the queue of the operating system")
	free := l.(*limited).free
	require.Len(t, free, limit)
	require.Empty(t, accepted)

	require.NoError(t, let[1].Close())
	require.Error(t, let[1].Close(), "a second Close must fail, and must not admit another connection")
	next := <-accepted
	greeting := make([]byte, 5)
	_, err = io.ReadFull(next, greeting)
	require.NoError(t, err)
	require.Equal(t, "hello", string(greeting))
	require.Len(t, free, limit)
	require.Empty(t, accepted)

	require.NoError(t, l.Close()) // Accept is waiting until a connection is closed
	require.NoError(t, l.Close(), "a second Close of the listener must not fail")
	server.Wait()
	require.True(t, errors.Is(last, net.ErrClosed), last)
	for _, c := range []net.Conn{let[0], let[2], next} {
		require.NoError(t, c.Close())
	}
	require.Empty(t, free)
}

// TestLimitListenerHalfClosed requires that CloseWrite closes only one direction of a limited
// connection. net/http calls it so that a client that still sends can read why it is refused.
func TestLimitListenerHalfClosed(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := LimitListener(inner, 1)
	defer l.Close()
	c := dialLimited(t, l)
	s, err := l.Accept()
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Write([]byte("no"))
	require.NoError(t, err)
	require.NoError(t, s.(interface{ CloseWrite() error }).CloseWrite())
	said, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "no", string(said))
	_, err = c.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(s, make([]byte, 1))
	require.NoError(t, err)
}
