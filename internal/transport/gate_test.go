package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGate: callers enter in the order of arrival, a caller that gives up takes nothing, and a
// gate that is shut refuses all.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1)
		ctx := context.Background()
		require.NoError(t, g.Enter(ctx, NewWaiter(), 3)) // only 1 is free, but one caller always fits
		var entered []int
		enter := func(ctx context.Context, i int) chan error {
			result := make(chan error, 1)
			go func() {
				err := g.Enter(ctx, NewWaiter(), 1)
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
		g.Leave(2)
		synctest.Wait()
		require.Empty(t, entered, "there is a debt")
		g.Leave(1)
		synctest.Wait()
		require.Equal(t, []int{1}, entered)
		require.NoError(t, <-first)
		why := errors.New("why")
		stop(why)
		synctest.Wait()
		require.Equal(t, why, <-second)
		fourth := enter(ctx, 4)
		g.Leave(1)
		synctest.Wait()
		require.Equal(t, []int{1, 3}, entered)
		require.NoError(t, <-third)
		g.Shut(why)
		g.Shut(errors.New("later"))
		require.Equal(t, why, <-fourth)
		require.Equal(t, why, g.Enter(ctx, NewWaiter(), 1))
		require.EqualValues(t, 0, g.free.Load())
	})
}

// TestGateGivesBack: a caller that is admitted and gives up at the same time takes nothing.
func TestGateGivesBack(t *testing.T) {
	for range 200 {
		g := NewGate(0)
		ctx, cancel := context.WithCancel(context.Background())
		w := NewWaiter()
		result := make(chan error)
		go func() { result <- g.Enter(ctx, w, 1) }()
		go cancel()
		g.Leave(1)
		if err := <-result; err == nil {
			g.Leave(1)
		}
		require.EqualValues(t, 1, g.free.Load())
		require.Empty(t, w.woken)
	}
}

// leavingContext is a context that has ended. It admits a waiter when its error is read.
type leavingContext struct {
	context.Context
	gate *Gate
}

func (c leavingContext) Done() <-chan struct{} {
	c.gate.Leave(1)
	return c.Context.Done()
}

// A caller that is admitted while its context ends gives its cost back if it fails.
func TestGateGivesBackWhatItTook(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	went := 0
	for range 200 { // both channels are ready, and select picks each in half of the cases
		g := NewGate(0)
		w := NewWaiter()
		if err := g.Enter(leavingContext{ended, g}, w, 1); err != nil {
			require.ErrorIs(t, err, context.Canceled)
			went++
		} else {
			g.Leave(1)
		}
		require.EqualValues(t, 1, g.free.Load())
		require.Empty(t, w.woken)
		require.NoError(t, g.Enter(t.Context(), w, 1), "the next one finds it free")
	}
	require.Positive(t, went)
}

// TestGateBounds: however many callers come and go at once, no more is taken than the free
// amount plus one cost, every caller enters, and everything is free again in the end.
func TestGateBounds(t *testing.T) {
	const free, most, visitors, visits = 40, 25, 8, 500
	g := NewGate(free)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for v := range visitors {
		wg.Go(func() {
			w := NewWaiter()
			for i := range visits {
				cost := int64(1 + (v*visits+i*7)%most)
				if !assert.NoError(t, g.Enter(context.Background(), w, cost)) {
					return
				}
				assert.Less(t, taken.Add(cost), int64(free+most))
				taken.Add(-cost)
				g.Leave(cost)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, free, g.free.Load())
	require.False(t, g.closed.Load(), "nobody waits")
	require.Empty(t, g.queue)
}
