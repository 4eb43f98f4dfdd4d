package remote

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/silence"
)

// TestUnreadIsNoSilence requires that a worker does not count as silent while bytes from it are
// unread.
func TestUnreadIsNoSilence(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer near.Close()
	far, err := listener.Accept()
	require.NoError(t, err)
	defer far.Close()
	n := &Network{}
	c := n.newConn(near, 1, "test")
	w := silence.NewWatch(4*time.Second, 0)
	var now time.Duration
	dead := func() (found bool) {
		for range 100 {
			now += w.Period
			w.Tick(now)
			found = found || c.judge(&w, time.Now()) == silence.Dead
		}
		return found
	}
	require.True(t, dead())
	_, err = far.Write([]byte{1})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return peerlink.Unread(near) }, patience, time.Millisecond)
	require.False(t, dead())

	_, err = near.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, far.(*net.TCPConn).SetLinger(0)) // Unread must not consume the error of a reset, which the system reports only once: the next read must get it
	require.NoError(t, far.Close())
	require.Eventually(t, func() bool { return peerlink.Unread(near) }, patience, time.Millisecond)
	_, err = near.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}
