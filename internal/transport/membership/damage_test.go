package membership

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// damaging is a connection that can flip bits in one written byte and in one read byte.
type damaging struct {
	net.Conn
	written, read atomic.Int64 // number of bytes before the byte to change; negative if no byte is to be changed
}

// change returns b, with a flipped bit if b contains the byte at offset at. It subtracts the
// length of b from at.
func change(b []byte, at *atomic.Int64) []byte {
	k := at.Load()
	at.Add(-int64(len(b)))
	if k < 0 || k >= int64(len(b)) {
		return b
	}
	b = bytes.Clone(b)
	b[k] ^= 16
	return b
}

func (d *damaging) Write(b []byte) (int, error) { return d.Conn.Write(change(b, &d.written)) }

func (d *damaging) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	copy(b, change(b[:n], &d.read))
	return n, err
}

// damagedDials is a TCP network. conn is the connection that was dialed last.
type damagedDials struct {
	peerlink.TCP
	conn *damaging
}

func (d *damagedDials) Dial(ctx context.Context, address string) (net.Conn, error) {
	nc, err := d.TCP.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	d.conn = &damaging{Conn: nc}
	d.conn.written.Store(-1)
	d.conn.read.Store(-1)
	return d.conn, nil
}

// TestDamagedControlMessages requires that, if a control message is damaged in either
// direction, all processes get an error that reports the damage and names the sender, and not
// an error about a closed connection.
func TestDamagedControlMessages(t *testing.T) {
	for name, c := range map[string]struct {
		byte    int64
		written bool // process 2 writes the damaged message; otherwise it reads the message
	}{
		"length to process 0":   {0, true},
		"number to process 0":   {4, true},
		"checksum to process 0": {8, true},
		"kind to process 0":     {12, true},
		"tail to process 0":     {14, true},
		"length to process 2":   {0, false},
		"kind to process 2":     {12, false},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			dials := &damagedDials{}
			group := joinAllAt(t, 3, func(p int, cfg *peerlink.Config) {
				if p == 2 {
					cfg.Net = dials
				}
			}, func(cfg *Config) {
				cfg.Detection = 800 * time.Millisecond // short, so that a heartbeat, which is then damaged, is sent soon
			})
			defer closeAll(group)
			from, to := 0, 2
			if c.written {
				from, to = 2, 0
				dials.conn.written.Store(c.byte)
			} else {
				dials.conn.read.Store(c.byte)
			}
			err := cause(t, group)
			require.ErrorIs(t, err, ErrDamaged)
			var lost *PeerError
			require.ErrorAs(t, err, &lost)
			require.Contains(t, lost.Reason, "sent a message that was damaged in transit: ")
			require.Equal(t, [2]int{from, to}, [2]int{lost.Rank, lost.Reporter})
		})
	}
}

// readToEnd is a connection that records whether it was read to its end, and whether it was
// closed before that.
type readToEnd struct {
	net.Conn
	ended, early atomic.Bool
}

func (c *readToEnd) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.ended.Store(c.ended.Load() || err == io.EOF)
	return n, err
}

func (c *readToEnd) Close() error {
	c.early.Store(c.early.Load() || !c.ended.Load())
	return c.Conn.Close()
}

func (c *readToEnd) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// notedAccepts is a network whose listener wraps every connection in a readToEnd.
type notedAccepts struct {
	peerlink.TCP
	net.Listener
	conn *readToEnd // the last connection
}

func (n *notedAccepts) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := n.TCP.Listen(ctx, address)
	n.Listener = l
	return n, err
}

func (n *notedAccepts) Accept() (net.Conn, error) {
	nc, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n.conn = &readToEnd{Conn: nc}
	return n.conn, nil
}

// TestSenderOfDamageLearnsTheError requires that the sender of a damaged message can read the
// resulting error even if it has sent further bytes after the message. Process 0 must read
// those bytes before it closes the connection: closing a socket with unread bytes resets the
// connection.
func TestSenderOfDamageLearnsTheError(t *testing.T) {
	defer goleak.VerifyNone(t)
	accepts := &notedAccepts{}
	group := joinAllAt(t, 2, func(p int, cfg *peerlink.Config) {
		if p == 0 {
			cfg.Net = accepts
		}
	}, nil)
	c := group[1].link.(*conn)
	c.mu.Lock()
	frame, err := appendFrame(nil, c.sent, beat{})
	c.mu.Unlock()
	require.NoError(t, err)
	frame[8] ^= 16
	_, err = c.nc.Write(append(frame, make([]byte, 4<<10)...))
	require.NoError(t, err)
	for _, m := range group {
		<-m.Failed()
		require.ErrorIs(t, m.Err(), ErrDamaged)
	}
	end(group[1])
	end(group[0])
	require.True(t, accepts.conn.ended.Load())
	require.False(t, accepts.conn.early.Load(), "process 0 must not close the connection before it has read the connection to its end")
}

// TestDamageWhileTheGroupForms requires an error that wraps ErrDamaged if a group does not form
// because of damage. Process 0 found the damage in another network, or an answer of process 0
// is damaged.
func TestDamageWhileTheGroupForms(t *testing.T) {
	defer goleak.VerifyNone(t)
	elsewhere := fmt.Errorf("worker 2 sent what was %w: frame 26", checksum.ErrDamaged)
	t.Run("elsewhere", func(t *testing.T) {
		err := joinOne(t, func(c *core) []command { return c.giveUp(elsewhere) })
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, elsewhere.Error())
	})
	t.Run("lost besides", func(t *testing.T) {
		err := joinOne(t, func(c *core) []command { return c.giveUp(fmt.Errorf("%w: %w", lostPeer{}, elsewhere)) })
		require.ErrorIs(t, err, ErrDamaged)
	})
	t.Run("in the answer", func(t *testing.T) {
		near, far := socketPair(t)
		link := newConn(near, time.Second)
		defer link.close()
		answer, err := appendFrame(nil, 0, waiting{"waiting for process 2"})
		require.NoError(t, err)
		more, err := appendFrame(nil, 1, waiting{"waiting for process 3"})
		require.NoError(t, err)
		more[len(more)-1] ^= 1
		_, err = far.Write(append(answer, more...))
		require.NoError(t, err)
		limit := &limit{nc: near}
		limit.set(t.Context())
		_, err = awaitAnswer(t.Context(), t.Context(), &Config{}, link, limit)
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, "process 0 sent a message that was damaged in transit: ")
	})
}

// joinOne joins process 1 of a group whose process 2 does not join. While process 1 waits, the
// coordinator processes the given event. joinOne returns the error that process 1 gets.
func joinOne(t *testing.T, event func(c *core) []command) error {
	t.Helper()
	cfg := Config{Process: 0, Processes: 3, Ranks: []int{0}, Size: 3, Store: FileStore(t.TempDir()), Group: "damaged", Attempt: 1, Port: newPort(t, nil)}
	defer cfg.Port.Close()
	done, err := cfg.completed()
	require.NoError(t, err)
	c, err := newCoordinator(t.Context(), done)
	require.NoError(t, err)
	defer c.close()
	require.NoError(t, cfg.Store.Set(t.Context(), done.key(), []byte(cfg.Port.Address())))
	second := cfg
	second.Process, second.Ranks = 1, []int{1}
	joined := make(chan error, 1)
	go func() {
		_, err := joinAt(t, t.Context(), second, nil)
		joined <- err
	}()
	for there := false; !there; runtime.Gosched() {
		c.mu.Lock()
		there = c.core.members[1].presence == present
		c.mu.Unlock()
	}
	c.step(func(time.Duration) []command { return event(c.core) })
	return <-joined
}

// socketPair returns the two ends of a TCP connection.
func socketPair(t testing.TB) (dialer, listener net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dialer, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	listener, err = l.Accept()
	require.NoError(t, err)
	for _, c := range []net.Conn{dialer, listener} {
		require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
		t.Cleanup(func() { c.Close() })
	}
	return dialer, listener
}
