package collective_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// messageGroups returns the groups for tests of point-to-point messages.
func messageGroups(t *testing.T, p int) []*testGroup {
	worlds := []*testGroup{inMemory(p)}
	if testsize.Soak || p == 2 || p == 5 {
		worlds = append(worlds, overTCP(t, p, nil))
	}
	if p > 2 && (testsize.Soak || p == 4) {
		worlds = append(worlds, overTCP(t, p, cyclicLayout(p, 2)))
	}
	return worlds
}

// TestEveryRankSendsToEveryOther requires that all pairs of ranks can exchange parts of a
// buffer, with the sender's rank as the tag. Parts are received directly into their final
// position. In round k, two ranks are partners if their sum is k modulo p.
func TestEveryRankSendsToEveryOther(t *testing.T) {
	t.Parallel()
	for p := 2; p <= 8; p++ {
		for _, w := range messageGroups(t, p) {
			for _, n := range []int{0, 1, 100, 30000} {
				w.run(t, func(c *collective.Comm) error { return exchangeAll(c, n) })
			}
			w.close(t)
		}
	}
}

func exchangeAll(c *collective.Comm, n int) error {
	p, r := c.Size(), c.Rank()
	in, out := values[int64](r, 0, n*p), make([]int64, n*p)
	copy(out[r*n:r*n+n], in[r*n:r*n+n])
	for k := range p {
		other := (k - r + p) % p
		if other == r {
			continue
		}
		send := func() error { return collective.Send(c, other, r, in[other*n:other*n+n]) }
		recv := func() error { return collective.Recv(c, other, other, out[other*n:other*n+n]) }
		first, second := send, recv
		if other < r {
			first, second = recv, send
		}
		if err := first(); err != nil {
			return err
		}
		if err := second(); err != nil {
			return err
		}
	}
	for s := range p {
		if err := same(fmt.Sprint("what came from rank ", s), values[int64](s, r*n, n), out[s*n:s*n+n]); err != nil {
			return err
		}
	}
	return nil
}

// TestMessagesOfATagKeepTheirOrderAndTagsDoNot requires that messages with the same tag arrive
// in order, and that a rank can receive messages with different tags in a different order than
// they were sent. Some messages are empty.
func TestMessagesOfATagKeepTheirOrderAndTagsDoNot(t *testing.T) {
	t.Parallel()
	const tags, each = 7, 5
	length := func(tag, k int) int { return (tag*k*131 + k) % 200 * (k % 3) }
	for _, w := range messageGroups(t, 2) {
		w.run(t, func(c *collective.Comm) error {
			if c.Rank() == 0 {
				for k := range each {
					for tag := range tags {
						if err := collective.Send(c, 1, tag, values[float32](tag, k, length(tag, k))); err != nil {
							return err
						}
					}
				}
				return nil
			}
			for tag := tags - 1; tag >= 0; tag-- {
				for k := range each {
					got := make([]float32, length(tag, k))
					if err := collective.Recv(c, 0, tag, got); err != nil {
						return err
					}
					if err := same(fmt.Sprintf("message %d of tag %d", k, tag), values[float32](tag, k, len(got)), got); err != nil {
						return err
					}
				}
			}
			return nil
		})
		w.close(t)
	}
}

// TestEmptyMessages requires that an empty message, a message with data and another empty
// message arrive one after another.
func TestEmptyMessages(t *testing.T) {
	t.Parallel()
	for _, w := range messageGroups(t, 2) {
		w.run(t, func(c *collective.Comm) error {
			for _, n := range []int{0, 10, 0, 0, 100_000, 0} {
				if c.Rank() == 0 {
					if err := collective.Send(c, 1, 3, values[uint8](1, 2, n)); err != nil {
						return err
					}
					continue
				}
				got := make([]uint8, n)
				if err := collective.Recv(c, 0, 3, got); err != nil {
					return err
				}
				if err := same("the message", values[uint8](1, 2, n), got); err != nil {
					return err
				}
			}
			return collective.Barrier(c)
		})
		w.close(t)
	}
}

// TestMessagesInAChain passes many messages from rank to rank up to the last rank. Each rank
// adds its own value to a message. Between messages the ranks call collectives.
func TestMessagesInAChain(t *testing.T) {
	t.Parallel()
	for _, w := range append(messageGroups(t, 4), messageGroups(t, 5)...) {
		w.run(t, func(c *collective.Comm) error {
			p, r := c.Size(), c.Rank()
			buf := make([]int64, 10)
			for k := range 100 {
				if k%10 == 5 {
					if err := collective.Barrier(c); err != nil {
						return err
					}
				}
				clear(buf)
				if r > 0 {
					if err := collective.Recv(c, r-1, k, buf); err != nil {
						return err
					}
				}
				for i := range buf {
					buf[i] += value[int64](r, k+i)
				}
				if r < p-1 {
					if err := collective.Send(c, r+1, k, buf); err != nil {
						return err
					}
					continue
				}
				o := operators[int64]()[0]
				if err := o.expect(p, k, buf); err != nil {
					return fmt.Errorf("message %d: %w", k, err)
				}
			}
			return nil
		})
		w.close(t)
	}
}

// waits has calls with which rank 0 waits for rank 1, although rank 1 makes no matching call.
var waits = map[string]func(ctx context.Context, c *collective.Comm) error{
	"Recv": func(ctx context.Context, c *collective.Comm) error {
		return collective.Recv(c, 1, 0, make([]int64, 4), collective.WithContext(ctx))
	},
	"Send": func(ctx context.Context, c *collective.Comm) error {
		for { // sends until the buffers between the two ranks are full, and then waits
			if err := collective.Send(c, 1, 0, make([]int64, 1<<17), collective.WithContext(ctx)); err != nil {
				return err
			}
		}
	},
	"Barrier": func(ctx context.Context, c *collective.Comm) error { return c.Barrier(ctx) },
	"AllReduce": func(ctx context.Context, c *collective.Comm) error {
		x := make([]float64, 1024)
		return collective.AllReduce(c, &collective.Reduction[float64]{
			Name: "x", Op: collective.Sum[float64](), Whole: x, Out: x, Context: ctx})
	},
	"AllReduce by ring": func(ctx context.Context, c *collective.Comm) error {
		x := make([]float64, 1024)
		return collective.AllReduce(c, &collective.Reduction[float64]{
			Name: "x", Op: collective.Sum[float64](), Whole: x, Out: x, Context: ctx, Algorithm: "ring"})
	},
	"AllGather": func(ctx context.Context, c *collective.Comm) error {
		return collective.AllGather(c, make([]int32, 9), make([]int32, 18), collective.WithContext(ctx))
	},
}

// TestAWaitEnds requires that a call of rank 0 that waits for rank 1 in vain ends when another
// goroutine ends the group, when the context is cancelled, or when the context times out, which
// is after 10 ms as in Gloo's test.
func TestAWaitEnds(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough of it")
	ways := map[string]func(w *testGroup, wait func(ctx context.Context) error) error{
		"abort": func(w *testGroup, wait func(ctx context.Context) error) error {
			if w.tcp != nil {
				go w.tcp[0].Abort(cause)
			} else {
				go w.end(1).Close(cause)
			}
			return wait(context.Background())
		},
		"cancel": func(w *testGroup, wait func(ctx context.Context) error) error {
			ctx, cancel := context.WithCancelCause(context.Background())
			go cancel(cause)
			return wait(ctx)
		},
		"deadline": func(w *testGroup, wait func(ctx context.Context) error) error {
			ctx, cancel := context.WithTimeoutCause(context.Background(), 10*time.Millisecond, cause)
			defer cancel()
			return wait(ctx)
		},
	}
	for what, wait := range waits {
		for how, way := range ways {
			for _, w := range []*testGroup{inMemory(2), overTCP(t, 2, nil)} {
				start := time.Now()
				err := way(w, func(ctx context.Context) error { return wait(ctx, w.end(0)) })
				require.ErrorContains(t, err, cause.Error(), "%s, %s, %s", what, how, w.name)
				require.Less(t, time.Since(start), killLimit, "%s, %s, %s", what, how, w.name)
				// When rank 1 later calls operations, it must get the same cause. Its first
				// operations may still succeed, because they may need only messages that rank 0
				// sent before its wait ended.
				for err = nil; err == nil; {
					err = collective.Barrier(w.end(1))
				}
				require.ErrorContains(t, err, cause.Error(), "%s, %s, %s", what, how, w.name)
				w.leave()
			}
		}
	}
}
