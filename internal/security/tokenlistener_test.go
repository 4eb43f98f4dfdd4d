package security

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/superstep-ml/superstep/internal/wire"
)

// behindTokenListener serves a job manager in memory, behind a token listener with the given limit and a patience
// of a minute. It returns a function that connects to it.
func behindTokenListener(t *testing.T, limit int, token Token) (dial func(context.Context, string) (net.Conn, error)) {
	inner := bufconn.Listen(1 << 16)
	l := NewTokenListener(inner, limit, time.Minute)
	s := grpc.NewServer(append(wire.ServerOptions(), TokenOptions(token)...)...)
	wire.RegisterJobManager(s, manager{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); require.NoError(t, <-served) })
	return func(ctx context.Context, _ string) (net.Conn, error) { return inner.DialContext(ctx) }
}

// silent opens a proper connection that answers pings and makes no call.
func silent(t *testing.T, dial func(context.Context, string) (net.Conn, error)) *grpc.ClientConn {
	cc, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial))
	require.NoError(t, err)
	t.Cleanup(func() { cc.Close() })
	cc.Connect()
	require.True(t, isOpen(cc))
	return cc
}

// isOpen reports whether a connection without calls, which gRPC does not open again, is
// still open.
func isOpen(cc *grpc.ClientConn) bool {
	synctest.Wait()
	return cc.GetState() == connectivity.Ready
}

// visit makes a client that shows a token, and counts the connections that it opens.
func visit(t *testing.T, dial func(context.Context, string) (net.Conn, error), token Token) (*wire.Client, *int) {
	opened := new(int)
	options := append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(TokenCredentials(token, false)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			*opened++ // written by one goroutine at a time, and read when all are blocked
			return dial(ctx, address)
		}))
	cc, err := grpc.NewClient("passthrough:///memory", options...)
	require.NoError(t, err)
	t.Cleanup(func() { cc.Close() })
	return wire.NewClient(cc), opened
}

func ask(t *testing.T, c *wire.Client) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := c.Overview(ctx, &wire.OverviewRequest{})
	synctest.Wait()
	return err
}

// TestTokenListenerExpires leaves one connection of each kind idle for longer than the listener's patience:
// the silent one and the one with a wrong token are closed, and the one that has shown the
// token still works a day later.
func TestTokenListenerExpires(t *testing.T) {
	right, wrong := newToken(t), newToken(t)
	synctest.Test(t, func(t *testing.T) {
		dial := behindTokenListener(t, 10, right)
		friend, friends := visit(t, dial, right)
		require.NoError(t, ask(t, friend))
		nobody := silent(t, dial)
		foe, foes := visit(t, dial, wrong)
		require.Equal(t, codes.Unauthenticated, wire.Code(ask(t, foe)))

		time.Sleep(59 * time.Second)
		require.True(t, isOpen(nobody))
		require.Equal(t, codes.Unauthenticated, wire.Code(ask(t, foe)))
		require.Equal(t, 1, *foes)

		time.Sleep(2 * time.Second)
		require.False(t, isOpen(nobody))
		require.Equal(t, codes.Unauthenticated, wire.Code(ask(t, foe)))
		require.Equal(t, 2, *foes, "with a connection of its own")

		time.Sleep(24 * time.Hour)
		require.NoError(t, ask(t, friend))
		require.Equal(t, 1, *friends)
	})
}

// TestTokenListenerMakesRoom fills a token listener with silent connections: a client with the token is admitted
// at once, in place of the oldest one, and is not the next to be closed.
func TestTokenListenerMakesRoom(t *testing.T) {
	token := newToken(t)
	synctest.Test(t, func(t *testing.T) {
		dial := behindTokenListener(t, 3, token)
		first, second, third := silent(t, dial), silent(t, dial), silent(t, dial)
		friend, opened := visit(t, dial, token)
		require.NoError(t, ask(t, friend))
		require.False(t, isOpen(first))
		require.True(t, isOpen(second))

		for range 10 {
			silent(t, dial)
		}
		require.False(t, isOpen(second))
		require.False(t, isOpen(third))
		require.NoError(t, ask(t, friend))
		require.Equal(t, 1, *opened)
	})
}

// TestDoorIsFull admits as many clients with the token as the limit: one more waits, without
// taking the place of any, until one leaves.
func TestDoorIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := bufconn.Listen(1 << 16)
		l := NewTokenListener(inner, 2, time.Minute)
		var in []*tokenConn
		accept := make(chan error, 10)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					accept <- err
					return
				}
				v := c.(*tokenConn)
				v.listener.mu.Lock()
				v.authenticated()
				v.listener.mu.Unlock()
				in = append(in, v)
				accept <- nil
			}
		}()
		for range 3 {
			c, err := inner.DialContext(t.Context())
			require.NoError(t, err)
			defer c.Close()
		}
		synctest.Wait()
		require.Len(t, in, 2)
		time.Sleep(time.Hour)
		require.Len(t, in, 2)

		require.NoError(t, in[0].Close())
		_ = in[0].Close() // does not free room twice
		synctest.Wait()
		require.Len(t, in, 3)
		require.Len(t, accept, 3)

		c, err := inner.DialContext(t.Context())
		require.NoError(t, err)
		defer c.Close()
		synctest.Wait() // until it waits for room
		require.NoError(t, l.Close())
		synctest.Wait()
		require.Len(t, accept, 4)
		for range 3 {
			require.NoError(t, <-accept)
		}
		require.True(t, errors.Is(<-accept, net.ErrClosed))
	})
}
