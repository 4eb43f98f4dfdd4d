package collective

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waiting starts op on ranks 0 and 1 of a group of 3 ranks, waits until both ranks block, and
// returns the channel that receives their errors.
func waiting(g *LocalGroup, op func(c *Comm) error) chan error {
	errs := make(chan error, 2)
	for r := range 2 {
		go func() { errs <- op(g.Rank(r)) }()
	}
	synctest.Wait()
	return errs
}

func TestFailuresReachThoseWhoWait(t *testing.T) {
	broken := errors.New("no space left")
	operations := map[string]func(c *Comm) error{
		"barrier":   func(c *Comm) error { return c.Barrier(context.Background()) },
		"allreduce": func(c *Comm) error { return AllReduce(c, wholeOf(10)) },
		"broadcast": func(c *Comm) error { _, err := c.BroadcastBool(context.Background(), 0, true); return err },
	}
	for name, op := range operations {
		for how, x := range map[string]struct {
			fail func(g *LocalGroup)
			want error
			text string
		}{
			"abort":        {func(g *LocalGroup) { g.Abort(broken) }, broken, "no space left"},
			"abort nil":    {func(g *LocalGroup) { g.Abort(nil) }, errAborted, "aborted"},
			"close, error": {func(g *LocalGroup) { g.Rank(2).Close(broken) }, broken, "rank 2: no space left"},
			"leave":        {func(g *LocalGroup) { g.Rank(2).Close(nil) }, ErrLeft, "but rank 2 left the group"},
		} {
			synctest.Test(t, func(t *testing.T) {
				g := NewLocalGroup(3)
				errs := waiting(g, op)
				require.Empty(t, errs, "%s: ranks 0 and 1 must wait for rank 2", name)
				x.fail(g)
				first := <-errs
				require.ErrorIs(t, first, x.want, "%s %s", name, how)
				require.ErrorContains(t, first, x.text)
				require.Equal(t, first, <-errs)
				g.Abort(errors.New("too late"))
				require.Equal(t, first, g.Err())
				require.Equal(t, first, op(g.Rank(1)), "later calls must return the first cause")
			})
		}
	}
}

func TestLeavingHarmsOnlyThoseWhoWait(t *testing.T) {
	for range 100 {
		g := NewLocalGroup(4)
		for _, err := range onRanks(g, func(c *Comm) error {
			defer c.Close(nil)
			for range 5 {
				if err := AllReduce(c, wholeOf(5)); err != nil {
					return err
				}
			}
			return nil
		}) {
			require.NoError(t, err)
		}
		require.NoError(t, g.Err())
		require.ErrorIs(t, g.Rank(0).Barrier(t.Context()), ErrClosed)
		require.ErrorIs(t, AllReduce(g.Rank(0), wholeOf(5)), ErrClosed)
		require.ErrorIs(t, NewAllReduce[float32](g.Rank(0)).Sum(), ErrClosed)
	}
	// An operation fails if a rank left the group before it.
	g := NewLocalGroup(2)
	g.Rank(1).Close(nil)
	g.Rank(1).Close(errors.New("closing twice does nothing"))
	err := g.Rank(0).Barrier(t.Context())
	require.ErrorIs(t, err, ErrLeft)
	require.ErrorContains(t, err, "rank 0 waits in Barrier #1, but rank 1 left the group")
	require.Equal(t, err, g.Rank(1).Barrier(t.Context()))
}

func TestCancellingOneRankEndsAll(t *testing.T) {
	reason := errors.New("the user pressed Ctrl-C")
	synctest.Test(t, func(t *testing.T) {
		g := NewLocalGroup(3)
		ctx, cancel := context.WithCancelCause(context.Background())
		errs := waiting(g, func(c *Comm) error {
			if c.Rank() == 0 {
				return c.Barrier(ctx)
			}
			return c.Barrier(context.Background())
		})
		cancel(reason)
		first := <-errs
		require.ErrorIs(t, first, reason)
		require.ErrorContains(t, first, "rank 0 was cancelled")
		require.Equal(t, first, <-errs)
		g.Rank(0).Close(nil)
	})
	synctest.Test(t, func(t *testing.T) { // the cancelled context is the Context of a Reduction
		g := NewLocalGroup(3)
		ctx, cancel := context.WithCancelCause(context.Background())
		errs := waiting(g, func(c *Comm) error {
			r := wholeOf(3)
			r.Context = ctx
			return AllReduce(c, r)
		})
		cancel(reason)
		require.ErrorIs(t, <-errs, reason)
		require.ErrorIs(t, <-errs, reason)
	})
	// If the context was cancelled before the call, the call fails even if it would not have to
	// wait.
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	require.ErrorIs(t, NewLocalGroup(1).Rank(0).Barrier(ctx), reason)
}

// TestAContextCancelledAfterItsOperationHarmsNobody requires that the group does not fail if
// the context of an operation is cancelled after the operation.
func TestAContextCancelledAfterItsOperationHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewLocalGroup(3)
		for range 50 {
			var cancels [3]context.CancelFunc
			var contexts [3]context.Context
			for r := range 3 {
				contexts[r], cancels[r] = context.WithCancel(context.Background())
			}
			errs := waiting(g, func(c *Comm) error { return c.Barrier(contexts[c.Rank()]) })
			require.NoError(t, g.Rank(2).Barrier(contexts[2]))
			require.NoError(t, <-errs)
			require.NoError(t, <-errs)
			for _, cancel := range cancels {
				cancel()
			}
			synctest.Wait()
			require.NoError(t, g.Err())
		}
		for r := range 3 {
			g.Rank(r).Close(nil)
		}
	})
}

// TestBuffersAreLeftAloneAfterReturn aborts the group while a user's operator works on the
// buffers of the ranks. It requires that no call of a rank returns before the operator has
// returned.
func TestBuffersAreLeftAloneAfterReturn(t *testing.T) {
	for how, limit := range limits {
		// If there is only one element, only rank 0 has a part to fold. The other ranks wait in
		// Recv.
		for _, n := range []int{1, 5 * foldBlock} {
			testBuffersAreLeftAlone(t, how, limit, n)
		}
	}
}

func testBuffersAreLeftAlone(t *testing.T, how string, limit, n int) {
	synctest.Test(t, func(t *testing.T) {
		g := groupWithLimit(3, limit)
		gate := make(chan bool)
		slow := UserOp("slow", true, func(dst, src []int64) {
			<-gate
			for i := range dst {
				dst[i] += src[i]
			}
		})
		returned := make(chan error, 3)
		for r := range 3 {
			go func() {
				x := make([]int64, n)
				returned <- AllReduce(g.Rank(r), &Reduction[int64]{Name: "x", Op: slow, Whole: x, Out: x})
			}()
		}
		synctest.Wait()
		cause := errors.New("stop")
		g.Abort(cause)
		synctest.Wait()
		require.Empty(t, returned, how)
		close(gate)
		for range 3 {
			// If one rank folds for all, the operation completes in spite of the abort. If
			// every rank folds a part, the operation ends early.
			if err := <-returned; how == "parts" {
				assert.Equal(t, cause, err)
			}
		}
		require.Equal(t, cause, g.Err())
	})
}

func TestOperatorsThatPanicOrExitEndTheGroup(t *testing.T) {
	for how, limit := range limits {
		for name, op := range map[string]func(dst, src []int64){
			"panicked: index 7": func(dst, src []int64) { panic("index 7") },
			"goroutine ended":   func(dst, src []int64) { runtime.Goexit() },
		} {
			g := groupWithLimit(3, limit)
			onRanks(g, func(c *Comm) error {
				x := make([]int64, 10)
				err := AllReduce(c, &Reduction[int64]{Name: "x", Op: UserOp("bad", true, op), Whole: x, Out: x})
				assert.ErrorContains(t, err, name, how)
				return nil
			})
			require.ErrorContains(t, g.Err(), name, how)
		}
	}
}

// TestClosingBetweenSumAndRecv requires that the other ranks get the result if one rank closes
// its Comm between Sum and Recv.
func TestClosingBetweenSumAndRecv(t *testing.T) {
	g := groupWithLimit(3, 0)
	for r, err := range onRanks(g, func(c *Comm) error {
		a := NewAllReduce[float32](c)
		if err := a.Send(wholeOf(1000)); err != nil {
			return err
		}
		if err := a.Sum(); err != nil {
			return err
		}
		if c.Rank() == 1 {
			c.Close(nil)
			return nil
		}
		return a.Recv()
	}) {
		require.NoError(t, err, r)
	}
}

// TestManyFailuresAtOnce requires that all ranks return the same cause if several ranks abort
// the group, cancel their context or leave the group during an operation.
func TestManyFailuresAtOnce(t *testing.T) {
	withProcessors(t, func(t *testing.T) {
		for seed := range 60 {
			p := 2 + seed%4
			g := groupWithLimit(p, seed%2*1000)
			ctx, cancel := context.WithCancel(context.Background())
			errs := onRanks(g, func(c *Comm) error {
				for k := 0; ; k++ {
					if k == seed && c.Rank() == seed%p {
						switch seed % 3 {
						case 0:
							g.Abort(errors.New("aborted"))
						case 1:
							cancel()
						case 2:
							c.Close(errors.New("left in anger"))
						}
					}
					if err := AllReduce(c, wholeOf(64)); err != nil {
						return err
					}
					if _, err := c.BroadcastBool(ctx, 0, false); err != nil {
						return err
					}
				}
			})
			cancel()
			for r, err := range errs {
				require.Error(t, err)
				require.Equal(t, g.Err(), err, "seed %d rank %d", seed, r)
				g.Rank(r).Close(nil)
			}
		}
	})
}

// TestLateRankDoesNotWriteToReturnedBuffers requires that rank 1 does not write to the Out of
// rank 0 after the call of rank 0 has returned. Rank 1 posts its buffer, the group is aborted,
// rank 0 returns with the cause, and then rank 1 calls Sum.
func TestLateRankDoesNotWriteToReturnedBuffers(t *testing.T) {
	for how, limit := range limits {
		synctest.Test(t, func(t *testing.T) {
			g := groupWithLimit(2, limit)
			late := NewAllReduce[float32](g.Rank(1))
			require.NoError(t, late.Send(wholeOf(3)))
			out := []float32{1, 2, 3}
			returned := make(chan error)
			go func() {
				returned <- AllReduce(g.Rank(0), &Reduction[float32]{
					Name: "centroids", Op: Sum[float32](), Whole: []float32{4, 5, 6}, Out: out,
				})
			}()
			synctest.Wait()
			cause := errors.New("stop")
			g.Abort(cause)
			require.Equal(t, cause, <-returned)
			require.Equal(t, cause, late.Sum())
			require.Equal(t, []float32{1, 2, 3}, out, how)
			require.Equal(t, cause, late.Recv())
		})
	}
}

// TestCloseWaitsForThoseWhoReadItsBuffers requires that Close of rank 1, called after Sum,
// waits while rank 0 still reads the buffer of rank 1.
func TestCloseWaitsForThoseWhoReadItsBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := groupWithLimit(2, 0)
		gate := make(chan bool)
		slow := UserOp("slow", true, func(dst, src []int64) { <-gate; dst[0] += src[0] })
		returned := make(chan error, 2)
		for r := range 2 {
			go func() {
				c := g.Rank(r)
				a := NewAllReduce[int64](c)
				x := []int64{int64(r + 5)}
				err := a.Send(&Reduction[int64]{Name: "x", Op: slow, Whole: x, Out: x})
				if err == nil {
					err = a.Sum()
				}
				if r == 1 {
					c.Close(nil)
				} else if err == nil {
					err = a.Recv()
				}
				returned <- err
			}()
		}
		synctest.Wait()
		require.Empty(t, returned)
		close(gate)
		require.NoError(t, <-returned)
		require.NoError(t, <-returned)
	})
}
