package remote

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGate: who comes first enters first, who gives up takes nothing along, and a
// gate that is shut turns everybody away.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{free: 1}
		ctx := context.Background()
		require.NoError(t, g.enter(ctx, newWaiter(), 3)) // of 1: one always fits
		var entered []int
		enter := func(ctx context.Context, i int) chan error {
			result := make(chan error, 1)
			go func() {
				err := g.enter(ctx, newWaiter(), 1)
				if err == nil {
					entered = append(entered, i)
				}
				result <- err
			}()
			synctest.Wait()
			return result
		}
		stopped, stop := context.WithCancelCause(ctx)
		first, second, third := enter(ctx, 1), enter(stopped, 2), enter(ctx, 3)
		g.leave(2)
		synctest.Wait()
		require.Empty(t, entered, "there is a debt")
		g.leave(1)
		synctest.Wait()
		require.Equal(t, []int{1}, entered)
		require.NoError(t, <-first)
		why := errors.New("why")
		stop(why)
		synctest.Wait()
		require.Equal(t, why, <-second)
		fourth := enter(ctx, 4)
		g.leave(1)
		synctest.Wait()
		require.Equal(t, []int{1, 3}, entered)
		require.NoError(t, <-third)
		g.shut(why)
		g.shut(errors.New("later"))
		require.Equal(t, why, <-fourth)
		require.Equal(t, why, g.enter(ctx, newWaiter(), 1))
		require.EqualValues(t, 0, g.free)
	})
}

// TestGateGivesBack: one who is let in and gives up at the same time takes nothing.
func TestGateGivesBack(t *testing.T) {
	for range 200 {
		g := &gate{}
		ctx, cancel := context.WithCancel(context.Background())
		w := newWaiter()
		result := make(chan error)
		go func() { result <- g.enter(ctx, w, 1) }()
		go cancel()
		g.leave(1)
		if err := <-result; err == nil {
			g.leave(1)
		}
		require.EqualValues(t, 1, g.free)
		require.Empty(t, w.woken)
	}
}

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
}
