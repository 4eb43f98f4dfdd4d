package membership

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var secret = []byte("a secret of a group of processes")

// socketPair is both ends of a TCP connection.
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

// TestProof pairs sides that know secrets or not.
func TestProof(t *testing.T) {
	other := []byte("another secret")
	for _, c := range []struct {
		dialer, listener []byte
		purpose          string
		says, hears      error // at the dialer, at the listener
	}{
		{nil, nil, "p", nil, nil},
		{secret, secret, "p", nil, nil},
		{secret, other, "p", ErrSecret, ErrSecret},
		{secret, secret, "q", ErrSecret, ErrSecret},
		{secret, nil, "p", ErrNoSecret, ErrNoSecret},
		{nil, secret, "p", nil, ErrNoSecret}, // which the listener says in its own words
	} {
		d, l := socketPair(t)
		var sent, said bytes.Buffer
		told := make(chan error, 1)
		go func() {
			err := Prove(&recorded{d, &sent}, c.dialer, c.purpose)
			if err == nil {
				_, err = d.Write([]byte("hello"))
			}
			told <- err
		}()
		conn, err := Verify(&recorded{l, &said}, c.listener, "p")
		require.ErrorIs(t, err, c.hears)
		require.ErrorIs(t, <-told, c.says)
		if conn != nil {
			hello := make([]byte, 5)
			_, err := io.ReadFull(conn, hello)
			require.NoError(t, err)
			require.Equal(t, "hello", string(hello), "nothing is lost")
		}
		require.Equal(t, c.says == nil, conn != nil)
		require.NotContains(t, sent.String()+said.String(), string(secret))
	}
}

// recorded keeps what is written.
type recorded struct {
	net.Conn
	w *bytes.Buffer
}

func (r *recorded) Write(p []byte) (int, error) {
	r.w.Write(p)
	return r.Conn.Write(p)
}

// TestProofIsNotPlayedBack has a dialer answer with what the listener said, and with
// an answer of an earlier connection.
func TestProofIsNotPlayedBack(t *testing.T) {
	var earlier []byte
	for _, cheat := range []func(nonce, answer []byte) []byte{
		func(nonce, answer []byte) []byte { // no cheat: what is right
			earlier = prove(secret, "dialer", "p", nonce, answer[:nonceBytes])
			return earlier
		},
		func(_, answer []byte) []byte { return answer[nonceBytes:] },
		func(_, _ []byte) []byte { return earlier },
	} {
		d, l := socketPair(t)
		got := make(chan error, 1)
		go func() { _, err := Verify(l, secret, "p"); got <- err }()
		nonce := make([]byte, nonceBytes) // the same each time
		_, err := d.Write(step(proofVersion, nonce))
		require.NoError(t, err)
		answer := make([]byte, nonceBytes+sha256.Size)
		require.NoError(t, readStep(d, answer))
		proof := cheat(nonce, answer)
		_, err = d.Write(step(verdictYes, proof))
		require.NoError(t, err)
		if bytes.Equal(proof, earlier) && bytes.Equal(proof, prove(secret, "dialer", "p", nonce, answer[:nonceBytes])) {
			require.NoError(t, <-got)
			require.NoError(t, readStep(d, nil))
			continue
		}
		require.ErrorIs(t, <-got, ErrSecret)
		require.ErrorIs(t, readStep(d, nil), ErrSecret)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte("SSPr\x01\x00\x00\x00"))
	f.Add(append(step(proofVersion, make([]byte, nonceBytes)), step(verdictYes, make([]byte, sha256.Size))...))
	f.Add([]byte("GET /"))
	f.Fuzz(func(t *testing.T, b []byte) {
		near, far := net.Pipe()
		defer near.Close()
		go func() { defer far.Close(); far.Write(b) }()
		go io.Copy(io.Discard, far)
		if conn, err := Verify(near, secret, "p"); err == nil && conn != nil {
			t.Fatal("it knew the secret")
		}
	})
}

// TestGroupsWithSecrets: all who know the secret come together; who does not is
// refused, and both sides say so.
func TestGroupsWithSecrets(t *testing.T) {
	defer goleak.VerifyNone(t)
	group := joinAll(t, 3, func(c *Config) { c.Secret = secret })
	closeAll(group)
	for _, c := range []struct {
		lead, follow []byte
		says, waits  string
	}{
		{secret, []byte("another"), ErrSecret.Error(), ErrSecret.Error()},
		{secret, nil, ErrNoSecret.Error() + ": who connects proves nothing", ErrNoSecret.Error()},
		{nil, secret, ErrNoSecret.Error() + ": the other has none", ErrNoSecret.Error()},
	} {
		var log safeText
		store := NewMemoryStore()
		var both sync.WaitGroup
		errs := make([]error, 2)
		for p := range 2 {
			both.Go(func() {
				m, err := Join(context.Background(), Config{
					Process: p, Processes: 2, Ranks: []int{p}, Size: 2, Store: store, Group: "g",
					Secret: [][]byte{c.lead, c.follow}[p], JoinTimeout: 2 * time.Second,
					Logger: hclog.New(&hclog.LoggerOptions{Output: &log}),
				})
				if err == nil {
					m.Close()
				}
				errs[p] = err
			})
		}
		both.Wait()
		require.ErrorContains(t, errs[1], c.says)
		require.ErrorContains(t, errs[0], "waiting for process 1 of 2: have they started? (refused: a process at 127.0.0.1:")
		require.ErrorContains(t, errs[0], c.waits)
		require.Contains(t, log.String(), "refused a connection")
	}
}

// safeText is a log.
type safeText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *safeText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
