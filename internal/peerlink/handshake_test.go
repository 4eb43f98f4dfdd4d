package peerlink

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// recording is a TCP network that records all bytes read and written on dialed connections.
type recording struct {
	TCP
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (r *recording) Dial(ctx context.Context, address string) (net.Conn, error) {
	nc, err := r.TCP.Dial(ctx, address)
	return &recorded{nc, r}, err
}

type recorded struct {
	net.Conn
	r *recording
}

func (c *recorded) note(b []byte) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.bytes.Write(b)
}

func (c *recorded) Write(b []byte) (int, error) { c.note(b); return c.Conn.Write(b) }

func (c *recorded) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.note(b[:n])
	return n, err
}

// TestSecrets connects ports with and without secrets. They must connect if both have the same
// secret or neither has one; otherwise both must get an error. The secret itself must never be
// sent.
func TestSecrets(t *testing.T) {
	other := []byte("another secret")
	for _, c := range []struct {
		dialer, listener []byte
		err              error
		says             string
	}{
		{nil, nil, nil, ""},
		{testSecret, testSecret, nil, ""},
		{testSecret, other, ErrSecret, "the other side does not know the secret"},
		{testSecret, nil, ErrNoSecret, "one side has a secret and the other has none: the other has none"},
		{nil, testSecret, ErrNoSecret, "one side has a secret and the other has none: the side that connects sends no proof of the secret"},
	} {
		var said recording
		from := listen(t, func(cfg *Config) { cfg.Secret, cfg.Net = c.dialer, &said })
		to := listen(t, func(cfg *Config) { cfg.Secret = c.listener })
		doubts := make(chan error, 1)
		_, came := open(t, to, Endpoint{Kind: Control, Scope: "g", Distrust: func(_ net.Addr, err error) { doubts <- err }})
		nc, err := dial(t, from, to, Hello{Kind: Control, Scope: "g", From: 3})
		if c.err == nil {
			require.NoError(t, err)
			caller := <-came
			require.Equal(t, Hello{Kind: Control, Scope: "g", From: 3}, caller.Hello)
			same(t, nc, caller)
		} else {
			require.ErrorIs(t, err, c.err)
			require.EqualError(t, err, c.says)
			require.True(t, IsFinal(err))
			require.ErrorIs(t, <-doubts, c.err)
			require.Empty(t, came)
		}
		said.mu.Lock()
		require.NotContains(t, said.bytes.String(), string(testSecret))
		said.mu.Unlock()
	}
}

// TestProofs requires that a dialer is refused if it has no valid proof for its connection.
// Instead of a valid proof, it sends zeros, the listener's own proof, a valid proof from
// another connection, or a proof for another hello.
func TestProofs(t *testing.T) {
	p := listen(t, nil)
	_, came := open(t, p, Endpoint{Kind: Rows})
	var earlier []byte
	for _, cheat := range []string{"none", "nothing", "echo", "replay", "another hello"} {
		g := p.greeting(Hello{Kind: Rows})
		g.nonce = [nonceBytes]byte{} // the same in every hello
		sent := g.encode()
		nc := raw(t, p)
		_, err := nc.Write(sent)
		require.NoError(t, err)
		theirs := make([]byte, nonceBytes+proofBytes)
		require.NoError(t, readAnswer(nc, theirs))
		nonce := theirs[:nonceBytes]
		require.Equal(t, prove(testSecret, listener, sent, nonce), theirs[nonceBytes:])
		proof := make([]byte, proofBytes)
		switch cheat {
		case "none":
			proof = prove(testSecret, dialer, sent, nonce)
			earlier = proof
		case "echo":
			proof = theirs[nonceBytes:]
		case "replay":
			proof = earlier
		case "another hello":
			g.Epoch++
			proof = prove(testSecret, dialer, g.encode(), nonce)
		}
		require.NoError(t, answer(nc, nil, proof))
		if cheat == "none" {
			require.NoError(t, readAnswer(nc, nil))
			<-came
			continue
		}
		require.ErrorIs(t, readAnswer(nc, nil), ErrSecret, cheat)
		_, err = nc.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	require.Empty(t, came)
}

// damaging is a TCP network that changes one byte on its next connection.
type damaging struct {
	TCP
	written, read atomic.Int64 // index of the byte to change; negative if no byte is to be changed
}

func (d *damaging) Dial(ctx context.Context, address string) (net.Conn, error) {
	nc, err := d.TCP.Dial(ctx, address)
	return &damaged{nc, d}, err
}

type damaged struct {
	net.Conn
	d *damaging
}

func flip(b []byte, at *atomic.Int64) []byte {
	k := at.Load()
	if at.Add(-int64(len(b))); k < 0 || k >= int64(len(b)) {
		return b
	}
	b = bytes.Clone(b)
	b[k] ^= 16
	return b
}

func (c *damaged) Write(b []byte) (int, error) { return c.Conn.Write(flip(b, &c.d.written)) }

func (c *damaged) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	copy(b, flip(b[:n], &c.d.read))
	return n, err
}

// TestDamagedHandshakes requires that a handshake fails if any of its bytes is changed, and
// that the error does not say that the secrets differ. As long as the other side cannot use the
// connection, the error must allow another try.
func TestDamagedHandshakes(t *testing.T) {
	var d damaging
	from, to := listen(t, func(c *Config) { c.Net = &d }), listen(t, nil)
	_, came := open(t, to, Endpoint{Kind: Rows})
	const mere = answerHead + sumBytes
	for at := range int64(helloBytes + proofBytes + mere) {
		d.written.Store(at)
		d.read.Store(-1)
		_, err := dial(t, from, to, Hello{Kind: Rows})
		require.Error(t, err, "the handshake must fail if byte %d to the listener is changed", at)
		require.NotErrorIs(t, err, ErrSecret)
		require.False(t, IsFinal(err), "%d: %v", at, err)
	}
	require.Empty(t, came)
	first := int64(nonceBytes + proofBytes + mere)
	for at := range first + mere {
		d.written.Store(-1)
		d.read.Store(at)
		nc, err := dial(t, from, to, Hello{Kind: Rows})
		require.Error(t, err, "the handshake must fail if byte %d to the dialer is changed", at)
		require.NotErrorIs(t, err, ErrSecret)
		magic := at < 4 || at >= first && at < first+4
		require.Equal(t, magic, !isDamage(err), "%d: %v", at, err)
		require.Equal(t, magic, IsFinal(err), "%d: %v", at, err)
		require.Equal(t, !magic && at >= first, nc != nil, "Dial must return the connection if the other side may use it")
	}
	for range mere { // the listener has admitted the connections whose last answer was damaged
		<-came
	}
}

func isDamage(err error) bool { return errors.Is(err, ErrDamaged) }

// TestSilentConnectionsAreBounded requires that the oldest connections are closed if there are
// too many silent connections, and that connections that send garbage are closed.
func TestSilentConnectionsAreBounded(t *testing.T) {
	p := listen(t, nil)
	_, came := open(t, p, Endpoint{Kind: Rows})
	idle := make([]net.Conn, maxHandshaking+20)
	for i := range idle {
		idle[i] = raw(t, p)
	}
	_, err := dial(t, listen(t, nil), p, Hello{Kind: Rows})
	require.NoError(t, err)
	<-came
	for _, nc := range idle[:20] {
		_, err := nc.Read(make([]byte, 1))
		require.Error(t, err, "the oldest connections must be closed")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", strings.Repeat("\x00", 500)} {
		nc := raw(t, p)
		io.WriteString(nc, text)
		b, _ := io.ReadAll(nc)
		require.Empty(t, b, "the connection must be closed without an answer")
	}
	for _, nc := range slices.Backward(idle) {
		nc.Close()
	}
}
