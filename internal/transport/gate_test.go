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

// TestGate requires that callers enter in the order of arrival, that a caller whose context
// ends takes nothing from the free amount, and that Enter returns the error of Shut to all
// callers after Shut.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1)
		ctx := context.Background()
		require.NoError(t, g.Enter(ctx, NewWaiter(), 3)) // only 1 is free, but a caller may enter if the free amount is greater than 0
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
		require.Empty(t, entered, "no caller may enter while the free amount is 0")
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

// TestGateGivesBack requires that a caller takes nothing if it is admitted and its context ends
// at the same time.
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

// leavingContext is a context that has ended. Its method Done calls gate.Leave, which admits a
// waiter.
type leavingContext struct {
	context.Context
	gate *Gate
}

func (c leavingContext) Done() <-chan struct{} {
	c.gate.Leave(1)
	return c.Context.Done()
}

// TestGateReturnsTheCostOfCancelledCallers requires that Enter adds its cost to the free amount
// again if the caller is admitted while its context ends, and Enter returns the context's
// cause.
func TestGateReturnsTheCostOfCancelledCallers(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	went := 0
	for range 200 { // both channels are ready, and select chooses each of them in about half of the rounds
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
		require.NoError(t, g.Enter(t.Context(), w, 1), "the next caller must be able to enter")
	}
	require.Positive(t, went)
}

// TestGateBounds has many concurrent callers. It requires that callers never hold more than the
// initial free amount plus one cost, that every caller enters, and that the whole amount is
// free at the end.
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
	require.False(t, g.closed.Load(), "closed must be false when no caller waits")
	require.Empty(t, g.queue)
}
