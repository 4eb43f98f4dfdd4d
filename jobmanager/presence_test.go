package jobmanager

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// presenceOf opens a port that sends text to everybody who connects, or nothing if text is "". It
// returns a registration with its address and the key "the key", and a function that closes it.
func presenceOf(t *testing.T, text string) (*wire.Register, func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var silent []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				for _, c := range silent {
					c.Close()
				}
				return
			}
			if text == "" {
				silent = append(silent, conn)
				continue
			}
			_, _ = io.WriteString(conn, text)
			conn.Close()
		}
	}()
	shut := func() {
		listener.Close()
		<-ended
	}
	t.Cleanup(shut)
	r := registration("a", 1)
	r.Presence, r.PresenceKey = listener.Addr().String(), "the key"
	return r, shut
}

// TestAskPresence requires that only the key counts as an answer, and only a refusal as the end of a
// process.
func TestAskPresence(t *testing.T) {
	for text, want := range map[string]bool{"the key": true, "the key and more": true, "another": false, "the ke": false, "": false} {
		r, shut := presenceOf(t, text)
		there, refused := askPresence(t.Context(), r)
		require.Equal(t, want, there, "%q", text)
		require.False(t, refused, "%q", text)
		shut()
		there, refused = askPresence(t.Context(), r)
		require.False(t, there)
		require.True(t, refused)
	}
	r, _ := presenceOf(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	there, refused := askPresence(ctx, r)
	require.False(t, there || refused)
}

// TestUnreachablePresence requires that refusals mean nothing if the port was never reached.
func TestUnreachablePresence(t *testing.T) {
	r, shut := presenceOf(t, "the key")
	shut()
	c := &conn{}
	ctx, cancel := context.WithTimeout(t.Context(), 3*presencePause)
	defer cancel()
	c.verifyPresence(ctx, r)
	require.False(t, c.showsPresence())
}

// TestEndOfATaskManagersProcess requires that a task manager whose process has ended counts as lost
// long before one that may come back would.
func TestEndOfATaskManagersProcess(t *testing.T) {
	m := start(t, func(c *Config) { c.Detection = 2 * patience })
	client := dial(t, m, testToken, nil)
	r, shut := presenceOf(t, "the key")
	tm := join(t, client, r)
	id := submit(t, client, specOf(t, 1))
	tm.run()
	require.Eventually(t, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, c := range m.conns {
			if c.showsPresence() {
				return true
			}
		}
		return false
	}, patience, time.Millisecond)
	shut()
	tm.leave()
	_, last := follow(t, client, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFailed, last.State)
	require.Contains(t, last.Failure.Message, "task manager tm-a lost its connection, and its process has ended")
}
