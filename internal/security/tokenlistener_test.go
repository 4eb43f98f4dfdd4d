package security

import (
	"context"
	"errors"
	"net"
	"sync"
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

// behindTokenListener serves a job manager in memory through a token listener with the given
// limit and a patience of a minute. It returns a function that dials it.
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

// silent opens a gRPC connection on which no call is made.
func silent(t *testing.T, dial func(context.Context, string) (net.Conn, error)) *grpc.ClientConn {
	cc, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial))
	require.NoError(t, err)
	t.Cleanup(func() { cc.Close() })
	cc.Connect()
	require.True(t, isOpen(cc))
	return cc
}

// isOpen reports whether a connection of silent is still open. gRPC does not open it again, as
// there are no calls.
func isOpen(cc *grpc.ClientConn) bool {
	synctest.Wait()
	return cc.GetState() == connectivity.Ready
}

// visit returns a client that sends a token, and the number of connections that it has opened.
func visit(t *testing.T, dial func(context.Context, string) (net.Conn, error), token Token) (*wire.Client, *int) {
	opened := new(int)
	options := append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(TokenCredentials(token, false)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			*opened++ // written by one goroutine at a time, and read when all goroutines are blocked
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

// TestTokenListenerExpires leaves three connections idle for longer than the listener's
// patience. The silent connection, and the connection that has sent a wrong token, must be
// closed. The connection that has sent the right token must still work a day later.
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
		require.Equal(t, 2, *foes, "the client must have opened a new connection")

		time.Sleep(24 * time.Hour)
		require.NoError(t, ask(t, friend))
		require.Equal(t, 1, *friends)
	})
}

// TestTokenListenerMakesRoom fills a token listener with silent connections. A client with the
// token must be admitted at once, in place of the oldest of them. Its connection must not be
// closed when further connections come.
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

// TestDoorIsFull opens as many authenticated connections as the limit allows. A further
// connection must wait until one of these is closed.
func TestDoorIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := bufconn.Listen(1 << 16)
		l := NewTokenListener(inner, 2, time.Minute)
		var mu sync.Mutex
		var in []*tokenConn
		admitted := func() []*tokenConn {
			mu.Lock()
			defer mu.Unlock()
			return in
		}
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
				mu.Lock()
				in = append(in, v)
				mu.Unlock()
				accept <- nil
			}
		}()
		for range 3 {
			c, err := inner.DialContext(t.Context())
			require.NoError(t, err)
			defer c.Close()
		}
		synctest.Wait()
		require.Len(t, admitted(), 2)
		time.Sleep(time.Hour)
		require.Len(t, admitted(), 2)

		require.NoError(t, admitted()[0].Close())
		_ = admitted()[0].Close() // a second Close must not admit a second connection
		synctest.Wait()
		require.Len(t, admitted(), 3)
		require.Len(t, accept, 3)

		c, err := inner.DialContext(t.Context())
		require.NoError(t, err)
		defer c.Close()
		synctest.Wait() // until Accept is blocked, waiting for the end of a connection
		require.NoError(t, l.Close())
		synctest.Wait()
		require.Len(t, accept, 4)
		for range 3 {
			require.NoError(t, <-accept)
		}
		require.True(t, errors.Is(<-accept, net.ErrClosed))
	})
}
