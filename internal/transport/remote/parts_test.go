package remote

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSilenceCountsTurns: a peer is dead when this process had as many turns to hear
// it as the detection time has periods, not before.
func TestSilenceCountsTurns(t *testing.T) {
	now := time.Unix(0, 0)
	w := newWatch(4*time.Second, now)
	turns := func(passed time.Duration) (n int, took time.Duration) {
		start := now
		for silent := time.Duration(0); silent < w.limit; n++ {
			now = now.Add(passed)
			silent += w.tick(now)
		}
		return n, now.Sub(start)
	}
	n, took := turns(w.period)
	require.Equal(t, 31, n)
	require.Less(t, took, 4*time.Second)
	n, _ = turns(time.Hour)
	require.Equal(t, 16, n)
}

// TestUnreadIsNoSilence looks at bytes that nobody has read yet.
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
	w := newWatch(4*time.Second, time.Now())
	silence := func() (longest time.Duration) {
		for range 100 {
			longest = max(longest, c.look(&w, w.period, time.Now()))
		}
		return longest
	}
	require.Greater(t, silence(), w.limit)
	_, err = far.Write([]byte{1})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return unread(near) }, patience, time.Millisecond)
	c.silent = 0
	require.Less(t, silence(), w.limit)

	_, err = near.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, far.(*net.TCPConn).SetLinger(0)) // a reset, which is told once: to who reads
	require.NoError(t, far.Close())
	require.Eventually(t, func() bool { return unread(near) }, patience, time.Millisecond)
	_, err = near.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}
