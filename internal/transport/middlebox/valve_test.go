package middlebox

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo answers every byte that it gets with the same byte, until the test ends.
func echo(t *testing.T) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		work.Wait()
	})
	return l.Addr().String()
}

// dial connects to an address until the test ends.
func dial(t *testing.T, address string) net.Conn {
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// answers sends a byte and requires the same byte as the answer.
func answers(t *testing.T, c net.Conn, b byte) {
	_, err := c.Write([]byte{b})
	require.NoError(t, err)
	got := make([]byte, 1)
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, b, got[0])
}

// silent requires that nothing arrives within a short time, and that the connection has not
// ended.
func silent(t *testing.T, c net.Conn) {
	require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, c.SetReadDeadline(time.Time{}))
}

// ended requires that the connection has ended.
func ended(t *testing.T, c net.Conn) {
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

// refused requires that a new connection ends, if it is made at all: a reset may arrive while dial
// still waits.
func refused(t *testing.T, address string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		require.ErrorIs(t, err, syscall.ECONNRESET)
		return
	}
	defer c.Close()
	ended(t, c)
}

// TestValve opens, holds and cuts the connections of a valve. Held bytes must arrive late, in
// order and once. A cut must end old and new connections, and the end of a sender's bytes must
// be relayed.
func TestValve(t *testing.T) {
	v, err := NewValve(echo(t))
	require.NoError(t, err)
	defer v.Close()
	before := dial(t, v.Address())
	answers(t, before, 1)

	v.Hold()
	meanwhile := dial(t, v.Address())
	for _, c := range []net.Conn{before, meanwhile} {
		_, err = c.Write([]byte{2, 3})
		require.NoError(t, err)
		silent(t, c)
	}
	v.Open()
	for _, c := range []net.Conn{before, meanwhile} {
		got := make([]byte, 2)
		_, err = io.ReadFull(c, got)
		require.NoError(t, err)
		require.Equal(t, []byte{2, 3}, got)
		silent(t, c)
	}

	v.Cut()
	ended(t, before)
	refused(t, v.Address())
	v.Open()
	after := dial(t, v.Address())
	answers(t, after, 4)
	require.NoError(t, after.(*net.TCPConn).CloseWrite())
	_, err = after.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)

	last := dial(t, v.Address())
	answers(t, last, 5)
	v.Hold()
	v.Close()
	ended(t, last)
	_, err = net.Dial("tcp", v.Address())
	require.Error(t, err)
}

// TestValveSlow requires that bytes take at least the time of the rate of a slow valve, and that an
// opened valve delivers the rest at once.
func TestValveSlow(t *testing.T) {
	v, err := NewValve(echo(t))
	require.NoError(t, err)
	defer v.Close()
	c := dial(t, v.Address())
	answers(t, c, 1)

	v.Slow(100)
	began := time.Now()
	answers(t, c, 2)
	require.GreaterOrEqual(t, time.Since(began), 20*time.Millisecond, "a byte there and back")

	v.Slow(1)
	_, err = c.Write(make([]byte, 3600))
	require.NoError(t, err)
	silent(t, c)
	v.Open()
	_, err = io.ReadFull(c, make([]byte, 3600))
	require.NoError(t, err)
}
