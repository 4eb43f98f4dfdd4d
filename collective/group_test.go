package collective

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// withProcessors runs body with different values of GOMAXPROCS. With some of these values,
// ranks spin before they park; with the other values, they park immediately.
func withProcessors(t *testing.T, body func(t *testing.T)) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("GOMAXPROCS=%d", procs), func(t *testing.T) {
			before := runtime.GOMAXPROCS(procs)
			defer runtime.GOMAXPROCS(before)
			body(t)
		})
	}
}

func TestBarrierSeparatesWhatIsBeforeFromWhatIsAfter(t *testing.T) {
	withProcessors(t, func(t *testing.T) {
		for _, p := range []int{1, 2, 3, 8} {
			g := NewLocalGroup(p)
			var came atomic.Int64
			for _, err := range onRanks(g, func(c *Comm) error {
				for k := int64(1); k <= 300; k++ {
					came.Add(1)
					if err := c.Barrier(context.Background()); err != nil {
						return err
					}
					if n := came.Load(); n < k*int64(p) {
						return fmt.Errorf("barrier %d must not return before all ranks have called it; the count of calls is %d", k, n)
					}
					if err := c.Barrier(context.Background()); err != nil {
						return err
					}
				}
				return nil
			}) {
				require.NoError(t, err)
			}
			require.NoError(t, g.Err())
			require.Equal(t, int64(600), g.Rank(0).Stats().Barriers)
		}
	})
}

func TestBroadcastsGiveTheRootsValue(t *testing.T) {
	withProcessors(t, func(t *testing.T) {
		for _, p := range []int{1, 2, 5} {
			g := NewLocalGroup(p)
			for _, err := range onRanks(g, func(c *Comm) error {
				var none context.Context // a nil context cannot be cancelled
				for k := range 200 {
					root := k % p
					v, err := c.BroadcastInt64(none, root, int64(1000*k+c.Rank()))
					if err != nil || v != int64(1000*k+root) {
						return fmt.Errorf("%d: %d %w", k, v, err)
					}
					b, err := c.BroadcastBool(t.Context(), root, c.Rank() == root && k%3 == 0)
					if err != nil || b != (k%3 == 0) {
						return fmt.Errorf("%d: %t %w", k, b, err)
					}
				}
				return nil
			}) {
				require.NoError(t, err)
			}
			require.Equal(t, int64(400), g.Rank(p-1).Stats().Broadcasts)
		}
	})
}

// wholeOf returns a valid Reduction of n elements. Callers change it to make it invalid.
func wholeOf(n int) *Reduction[float32] {
	x := make([]float32, n)
	return &Reduction[float32]{Name: "centroids", Op: Sum[float32](), Whole: x, Out: x}
}

// TestDisagreementIsAnErrorOnAllRanks requires that all ranks get the same MismatchError if the
// call of one rank differs from the calls of the other ranks.
func TestDisagreementIsAnErrorOnAllRanks(t *testing.T) {
	ctx := context.Background()
	barrier := func(c *Comm) error { return c.Barrier(ctx) }
	reduce := func(req *Reduction[float32]) func(c *Comm) error {
		return func(c *Comm) error {
			r := *req
			r.Whole = append([]float32(nil), req.Whole...)
			r.Out = make([]float32, len(req.Out))
			return AllReduce(c, &r)
		}
	}
	with := func(change func(r *Reduction[float32])) func(c *Comm) error {
		r := wholeOf(4096)
		change(r)
		return reduce(r)
	}
	user := UserOp("u", true, func(dst, src []float32) {})
	cases := map[string]struct {
		usual, odd func(c *Comm) error
		want       [2]string // parts of the descriptions of the odd call and of the usual call
	}{
		"operation": {barrier, reduce(wholeOf(4096)),
			[2]string{`AllReduce "centroids" #2 (4096 float32, sum, whole buffers)`, `Barrier #2`}},
		"length": {reduce(wholeOf(4096)), reduce(wholeOf(4095)),
			[2]string{`"centroids" #2 (4095 float32`, `"centroids" #2 (4096 float32`}},
		"name": {reduce(wholeOf(4096)), with(func(r *Reduction[float32]) { r.Name = "counts" }),
			[2]string{`AllReduce "counts" #2`, `AllReduce "centroids" #2`}},
		"operator": {reduce(wholeOf(4096)), with(func(r *Reduction[float32]) { r.Op = Max[float32]() }),
			[2]string{`float32, max`, `float32, sum`}},
		"user operator": {with(func(r *Reduction[float32]) { r.Op = user }), with(func(r *Reduction[float32]) { r.Op = user; r.Op.name = "v" }),
			[2]string{`operator v`, `operator u`}},
		"type": {reduce(wholeOf(4096)), func(c *Comm) error {
			x := make([]float64, 4096)
			return AllReduce(c, &Reduction[float64]{Name: "centroids", Op: Sum[float64](), Whole: x, Out: x})
		}, [2]string{`4096 float64`, `4096 float32`}},
		"kind of input": {reduce(wholeOf(4096)), with(func(r *Reduction[float32]) { r.Whole, r.Shards = nil, 16 }),
			[2]string{`forests over 16 shards`, `whole buffers`}},
		"shards": {with(func(r *Reduction[float32]) { r.Whole, r.Shards = nil, 8 }), with(func(r *Reduction[float32]) { r.Whole, r.Shards = nil, 16 }),
			[2]string{`over 16 shards`, `over 8 shards`}},
		"root": {func(c *Comm) error { _, err := c.BroadcastBool(ctx, 0, true); return err },
			func(c *Comm) error { _, err := c.BroadcastBool(ctx, 1, true); return err },
			[2]string{`Broadcast #2 (1 bool from rank 1)`, `Broadcast #2 (1 bool from rank 0)`}},
		"type of broadcast": {func(c *Comm) error { _, err := c.BroadcastBool(ctx, 0, true); return err },
			func(c *Comm) error { _, err := c.BroadcastInt64(ctx, 0, 1); return err },
			[2]string{`1 int64 from rank 0`, `1 bool from rank 0`}},
	}
	for name, x := range cases {
		for p := 2; p <= 5; p++ {
			for odd := range p {
				g := NewLocalGroup(p)
				errs := onRanks(g, func(c *Comm) error {
					if err := c.Barrier(ctx); err != nil {
						return err
					}
					if c.Rank() == odd {
						return x.odd(c)
					}
					return x.usual(c)
				})
				for _, err := range errs {
					require.Equal(t, errs[0], err)
					var m *MismatchError
					require.ErrorAs(t, err, &m, name)
					mine, theirs := m.Doing, m.OtherDoing
					if m.Other == odd {
						mine, theirs = theirs, mine
					} else {
						require.Equal(t, odd, m.Rank, name)
					}
					require.Contains(t, mine, x.want[0], name)
					require.Contains(t, theirs, x.want[1], name)
					require.ErrorContains(t, err, fmt.Sprintf("rank %d is in ", odd))
				}
				require.Equal(t, errs[0], g.Rank(0).Barrier(ctx), "later calls must return the same error")
			}
		}
	}
}

// TestDisagreementIsFoundBeforeAllHaveCome requires that ranks 0 and 1 of 3 get the
// MismatchError before rank 2 makes its call.
func TestDisagreementIsFoundBeforeAllHaveCome(t *testing.T) {
	g := NewLocalGroup(3)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	wg.Go(func() { errs[0] = g.Rank(0).Barrier(context.Background()) })
	wg.Go(func() { errs[1] = AllReduce(g.Rank(1), wholeOf(7)) })
	wg.Wait()
	var m *MismatchError
	require.ErrorAs(t, errs[0], &m)
	require.Equal(t, errs[0], errs[1])
	require.Equal(t, errs[0], AllReduce(g.Rank(2), wholeOf(7)))
}

func TestOverlappingForestsAreRefused(t *testing.T) {
	g := NewLocalGroup(3)
	for _, err := range onRanks(g, func(c *Comm) error {
		node := sharding.Node{Level: 1, Index: min(c.Rank(), 1)}
		return AllReduce(c, &Reduction[float64]{Name: "x", Op: Sum[float64](), Shards: 8, Out: []float64{0},
			Forest: []sharding.Entry[[]float64]{{Node: node, Value: []float64{1}}}})
	}) {
		require.ErrorContains(t, err, `AllReduce "x": rank 1 brings node 1:1 (shards [2,4)) and rank 2 brings node 1:1 (shards [2,4)), which overlap`)
	}
}

func TestBadRequestsEndTheGroup(t *testing.T) {
	leaf := func(n int) []sharding.Entry[[]float32] {
		return []sharding.Entry[[]float32]{{Node: sharding.Leaf(3), Value: make([]float32, n)}}
	}
	for want, spoil := range map[string]func(r *Reduction[float32]){
		`"centroids" has no operator`:                             func(r *Reduction[float32]) { r.Op = Op[float32]{} },
		`"centroids" brings 4 elements but has room for 3`:        func(r *Reduction[float32]) { r.Out = r.Out[:3] },
		`brings both a forest and a whole buffer`:                 func(r *Reduction[float32]) { r.Forest, r.Shards = leaf(4), 4 },
		`0 shards: want a power of two`:                           func(r *Reduction[float32]) { r.Whole, r.Forest = nil, leaf(4) },
		`brings 5 elements for node 0:3 but has room for 4`:       func(r *Reduction[float32]) { r.Whole, r.Forest, r.Shards = nil, leaf(5), 4 },
		`brings node 0:3, which is not in the tree over 2 shards`: func(r *Reduction[float32]) { r.Whole, r.Forest, r.Shards = nil, leaf(4), 2 },
		`brings node 9:0, which is not in the tree over 4 shards`: func(r *Reduction[float32]) {
			r.Whole, r.Forest, r.Shards = nil, leaf(4), 4
			r.Forest[0].Node = sharding.Node{Level: 9}
		},
	} {
		g := NewLocalGroup(2)
		for _, err := range onRanks(g, func(c *Comm) error {
			r := wholeOf(4)
			if c.Rank() == 1 {
				spoil(r)
			}
			return AllReduce(c, r)
		}) {
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "rank 1: ")
		}
	}
	g := NewLocalGroup(2)
	_, err := g.Rank(1).BroadcastInt64(t.Context(), 2, 0)
	require.ErrorContains(t, err, "rank 1: broadcast from rank 2 in a group of 2")
	require.Panics(t, func() { g.Rank(2) })
	require.Panics(t, func() { NewLocalGroup(0) })
}

func TestCallsOutOfOrderAreRefused(t *testing.T) {
	for name, misuse := range map[string]func(c *Comm, a *AllReducer[float32]) error{
		"Sum first":          func(c *Comm, a *AllReducer[float32]) error { return a.Sum() },
		"Recv first":         func(c *Comm, a *AllReducer[float32]) error { return a.Recv() },
		"Barrier in between": func(c *Comm, a *AllReducer[float32]) error { _ = a.Send(wholeOf(1)); return c.Barrier(t.Context()) },
		"Send twice":         func(c *Comm, a *AllReducer[float32]) error { _ = a.Send(wholeOf(1)); return a.Send(wholeOf(1)) },
		"no Sum":             func(c *Comm, a *AllReducer[float32]) error { _ = a.Send(wholeOf(1)); return a.Recv() },
		"two at once": func(c *Comm, a *AllReducer[float32]) error {
			_ = a.Send(wholeOf(1))
			return NewAllReduce[float32](c).Sum()
		},
	} {
		g := NewLocalGroup(2)
		err := misuse(g.Rank(0), NewAllReduce[float32](g.Rank(0)))
		require.ErrorContains(t, err, "rank 0: ", name)
		require.Equal(t, err, g.Rank(1).Barrier(t.Context()), name)
	}
}

func TestDescribe(t *testing.T) {
	require.Equal(t, "direct over shared memory, 3 ranks", NewLocalGroup(3).Rank(1).Describe().String())
	require.Equal(t, "direct over shared memory, 1 rank", NewLocalGroup(1).Rank(0).Describe().String())
	require.Equal(t, 3, NewLocalGroup(3).Rank(0).Size())
}
