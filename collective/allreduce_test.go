package collective

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// limits has a value of serialLimit for each of the two ways to carry out an AllReduce: every
// rank folds a part, or the last rank to arrive folds everything.
var limits = map[string]int{"parts": 0, "serial": math.MaxInt}

func groupWithLimit(p, limit int) *LocalGroup {
	g := NewLocalGroup(p)
	g.serialLimit = limit
	return g
}

// lengths returns numbers of elements around p and around a multiple of foldBlock.
func lengths(p int) []int {
	return []int{0, 1, max(p-1, 0), p, p + 1, 97, p*foldBlock + 13}
}

// wholeOnAll runs an AllReduce with one whole buffer per rank, in place or not. It requires
// that all ranks get the same result, and returns that result.
func wholeOnAll[T Number](t *testing.T, g *LocalGroup, op Op[T], in [][]T, inPlace bool) []T {
	t.Helper()
	outs := make([][]T, g.Size())
	for i, err := range onRanks(g, func(c *Comm) error {
		mine := append([]T(nil), in[c.Rank()]...)
		out := mine
		if !inPlace {
			out = make([]T, len(mine))
		}
		outs[c.Rank()] = out
		err := AllReduce(c, &Reduction[T]{Name: "x", Op: op, Whole: mine, Out: out})
		if !inPlace {
			assert.Equal(t, bitsOf(in[c.Rank()]), bitsOf(mine), "the input must not be modified")
		}
		return err
	}) {
		require.NoError(t, err)
		require.Equal(t, bitsOf(outs[0]), bitsOf(outs[i]), "ranks 0 and %d", i)
	}
	return outs[0]
}

func testWhole[T Number](t *testing.T, ops ...Op[T]) {
	for _, op := range ops {
		for how, limit := range limits {
			for p := 1; p <= 9; p++ {
				g := groupWithLimit(p, limit)
				for _, n := range lengths(p) {
					in := make([][]T, p)
					for r := range in {
						in[r] = convert[T](hostile(uint64(r), n))
					}
					want := treeOverRanks(op, in)
					for _, inPlace := range []bool{false, true} {
						got := wholeOnAll(t, g, op, in, inPlace)
						require.Equal(t, bitsOf(want), bitsOf(got), "%s %s p=%d n=%d in place: %t", op.Name(), how, p, n, inPlace)
					}
				}
			}
		}
	}
}

func TestWholeBuffers(t *testing.T) {
	t.Run("float64", func(t *testing.T) {
		testWhole(t, Sum[float64](), Prod[float64](), Max[float64](), Min[float64](), lean())
	})
	t.Run("float32", func(t *testing.T) {
		testWhole(t, Sum[float32](), Prod[float32](), Max[float32](), Min[float32]())
	})
	t.Run("int64", func(t *testing.T) {
		testWhole(t, Sum[int64](), Prod[int64](), Max[int64](), Min[int64](), chain())
	})
	t.Run("int32", func(t *testing.T) {
		testWhole(t, Sum[int32](), Prod[int32](), Max[int32](), Min[int32]())
	})
	t.Run("uint8", func(t *testing.T) {
		testWhole(t, Sum[uint8](), Prod[uint8](), Max[uint8](), Min[uint8]())
	})
}

// forestOf returns a forest for the shards in range r: one entry for each node of the cover of
// r, computed by the reference treeOverShards. A node without a shard that has a value gives no
// entry.
func forestOf[T Number](op Op[T], leaves [][]T, r sharding.Range) []sharding.Entry[[]T] {
	forest := []sharding.Entry[[]T]{}
	for _, node := range sharding.Cover(r) {
		if v := treeOverShards(op, leaves[node.Range().Lo:node.Range().Hi]); v != nil {
			forest = append(forest, sharding.Entry[[]T]{Node: node, Value: v})
		}
	}
	return forest
}

func testForests[T Number](t *testing.T, op Op[T]) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, shards := range []int{1, 8, 32} {
		for _, present := range []float64{1, 0.5, 0.1} {
			n := []int{1, 5, foldBlock + 3}[r.IntN(3)]
			leaves := make([][]T, shards)
			for s := range leaves {
				if r.Float64() < present {
					leaves[s] = convert[T](hostile(uint64(s), n))
				}
			}
			want := treeOverShards(op, leaves)
			if want == nil {
				want = make([]T, n)
				for i := range want {
					want[i] = op.Identity()
				}
			}
			for p := 1; p <= 9; p++ {
				for how, limit := range limits {
					g := groupWithLimit(p, limit)
					outs := make([][]T, p)
					for i, err := range onRanks(g, func(c *Comm) error {
						forest := forestOf(op, leaves, sharding.Split(shards, p, c.Rank()))
						if len(forest) == 0 && c.Rank()%2 == 0 {
							forest = nil // nil means the same as an empty forest
						}
						outs[c.Rank()] = make([]T, n)
						return AllReduce(c, &Reduction[T]{Name: "f", Op: op, Shards: shards, Forest: forest, Out: outs[c.Rank()]})
					}) {
						require.NoError(t, err)
						require.Equal(t, bitsOf(want), bitsOf(outs[i]), "%s %s S=%d p=%d n=%d rank %d", op.Name(), how, shards, p, n, i)
					}
				}
			}
		}
	}
}

func TestForestsDoNotDependOnTheNumberOfRanks(t *testing.T) {
	testForests(t, Sum[float64]())
	testForests(t, Sum[float32]())
	testForests(t, Max[float64]())
	testForests(t, Prod[int32]())
	testForests(t, lean())
	testForests(t, chain())
}

// TestTheDataTellsOrdersApart requires that folding the data of the tests above from the right,
// in a chain, or with the ranks in another order gives different bits. Otherwise the tests
// above could not detect a wrong order.
func TestTheDataTellsOrdersApart(t *testing.T) {
	const p, n = 8, 97
	in := make([][]float64, p)
	for r := range in {
		in[r] = hostile(uint64(r), n)
	}
	op := Sum[float64]()
	got := wholeOnAll(t, NewLocalGroup(p), op, in, false)
	right, left := in[p-1], in[0]
	for r := 1; r < p; r++ {
		right = join(op, in[p-1-r], right)
		left = join(op, left, in[r])
	}
	moved := append([][]float64{in[p-1]}, in[:p-1]...)
	for name, wrong := range map[string][]float64{"right to left": right, "chain": left, "moved": treeOverRanks(op, moved)} {
		differ := 0
		for i := range wrong {
			if math.Float64bits(wrong[i]) != math.Float64bits(got[i]) {
				differ++
			}
		}
		require.Greater(t, differ, n/4, name)
	}
}

func TestReductionWithoutContributions(t *testing.T) {
	empty := func(op Op[float64]) float64 {
		out := make([]float64, 3)
		errs := onRanks(NewLocalGroup(3), func(c *Comm) error {
			mine := []float64{9, 9, 9}
			if c.Rank() == 1 {
				out = mine
			}
			return AllReduce(c, &Reduction[float64]{Name: "none", Op: op, Shards: 8, Out: mine})
		})
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.Equal(t, out[0], out[1])
		return out[2]
	}
	require.Equal(t, 0.0, empty(Sum[float64]()))
	require.Equal(t, 1.0, empty(Prod[float64]()))
	require.Equal(t, math.Inf(-1), empty(Max[float64]()))
	require.Equal(t, math.Inf(1), empty(Min[float64]()))
	require.Equal(t, 0.0, empty(lean()))
	require.Equal(t, -2.5, empty(lean().WithIdentity(-2.5)))
}

func TestIdentities(t *testing.T) {
	require.Equal(t, int64(math.MinInt64), Max[int64]().Identity())
	require.Equal(t, int64(math.MaxInt64), Min[int64]().Identity())
	require.Equal(t, int32(math.MinInt32), Max[int32]().Identity())
	require.Equal(t, int32(math.MaxInt32), Min[int32]().Identity())
	require.Equal(t, uint8(0), Max[uint8]().Identity())
	require.Equal(t, uint8(255), Min[uint8]().Identity())
	require.Equal(t, float32(math.Inf(-1)), Max[float32]().Identity())
	require.Equal(t, float32(math.Inf(1)), Min[float32]().Identity())
	require.True(t, Sum[uint8]().Commutative())
	require.False(t, lean().Commutative())
}

func TestRanksMayShareOneResult(t *testing.T) {
	const p, n = 5, 3*foldBlock + 1
	for how, limit := range limits {
		for over := -1; over < p; over++ { // out is also the input of rank over, unless over is -1
			in := make([][]int64, p)
			for r := range in {
				in[r] = convert[int64](hostile(uint64(r), n))
			}
			want := treeOverRanks(chain(), in)
			out := make([]int64, n)
			if over >= 0 {
				out = in[over]
			}
			for _, err := range onRanks(groupWithLimit(p, limit), func(c *Comm) error {
				return AllReduce(c, &Reduction[int64]{Name: "x", Op: chain(), Whole: in[c.Rank()], Out: out})
			}) {
				require.NoError(t, err)
			}
			require.Equal(t, want, out, "%s over %d", how, over)
		}
	}
}

func TestThreeStages(t *testing.T) {
	const p = 4
	for how, limit := range limits {
		g := groupWithLimit(p, limit)
		errs := onRanks(g, func(c *Comm) error {
			a, b := NewAllReduce[float64](c), NewAllReduce[int64](c)
			for step := range 20 {
				x := []float64{float64(c.Rank()), float64(step), 1}
				if err := a.Send(&Reduction[float64]{Name: "a", Op: Sum[float64](), Whole: x, Out: x}); err != nil {
					return err
				}
				if err := a.Sum(); err != nil {
					return err
				}
				if err := a.Recv(); err != nil {
					return err
				}
				if x[0] != 6 || x[1] != float64(p*step) || x[2] != p {
					return fmt.Errorf("step %d: the sums are wrong: %v", step, x)
				}
				y := []int64{int64(c.Rank())}
				if err := b.Send(&Reduction[int64]{Name: "b", Op: Max[int64](), Whole: y, Out: y}); err != nil {
					return err
				}
				if err := b.Sum(); err != nil {
					return err
				}
				if err := b.Recv(); err != nil {
					return err
				}
				if y[0] != p-1 {
					return fmt.Errorf("step %d: the maximum is wrong: %v", step, y)
				}
			}
			if a.Stats().Calls != 20 || b.Stats().Calls != 20 || c.Stats().Calls != 40 {
				return fmt.Errorf("the counts of calls must be 20, 20 and 40: %+v %+v %+v", a.Stats(), b.Stats(), c.Stats())
			}
			sum := a.Stats()
			sum.Add(b.Stats())
			if sum != c.Stats() {
				return fmt.Errorf("the statistics of both operations add up to %+v, but those of the Comm are %+v", sum, c.Stats())
			}
			return nil
		})
		for _, err := range errs {
			require.NoError(t, err, how)
		}
	}
}

// TestBytesAreTheProgramsBytes requires that Stats.Bytes equals the number of bytes that the
// direct algorithm sends.
func TestBytesAreTheProgramsBytes(t *testing.T) {
	for p := 1; p <= 6; p++ {
		for _, n := range []int{0, 1, 7, 100} {
			g := NewLocalGroup(p)
			for r, err := range onRanks(g, func(c *Comm) error {
				x := make([]float32, n)
				return AllReduce(c, &Reduction[float32]{Name: "x", Op: Sum[float32](), Whole: x, Out: x})
			}) {
				require.NoError(t, err)
				want := 0
				if cost := algorithm.Direct().Cost(algorithm.Params{P: p}); cost.Sent != nil {
					want = 4 * cost.Sent(r, program.Even(n, p))
				}
				require.Equal(t, int64(want), g.Rank(r).Stats().Bytes)
			}
		}
	}
	// With a forest, the bytes of every entry count.
	g := NewLocalGroup(2)
	for _, err := range onRanks(g, func(c *Comm) error {
		req := &Reduction[float64]{Name: "x", Op: Sum[float64](), Shards: 8, Out: make([]float64, 10)}
		for _, s := range []int{0, 2} {
			req.Forest = append(req.Forest, sharding.Entry[[]float64]{Node: sharding.Leaf(4*c.Rank() + s), Value: make([]float64, 10)})
		}
		return AllReduce(c, req)
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, int64(8*(2*5+5)), g.Rank(0).Stats().Bytes)
}

// TestSteadyStateAllocatesNothing requires that a loop of AllReduces of forests and of whole
// buffers, each followed by a BroadcastBool, allocates nothing, with both values of limits.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	const p = 3
	for how, limit := range limits {
		g := groupWithLimit(p, limit)
		step := make([]chan bool, p)
		done := make(chan error, p)
		for r := range p {
			step[r] = make(chan bool)
			forest := forestRequests(p, 16, 100)[r]
			x := make([]int64, 50)
			whole := &Reduction[int64]{Name: "w", Op: chain(), Whole: x, Out: x, Context: t.Context()}
			go func() {
				c := g.Rank(r)
				for range step[r] {
					err := AllReduce(c, forest)
					if err == nil {
						err = AllReduce(c, whole)
					}
					if err == nil {
						_, err = c.BroadcastBool(t.Context(), 1, true)
					}
					if err == nil {
						err = c.Barrier(t.Context())
					}
					done <- err
				}
				c.Close(nil)
				done <- nil
			}()
		}
		once := func() {
			for r := range p {
				step[r] <- true
			}
			for range p {
				require.NoError(t, <-done)
			}
		}
		once()
		require.Zero(t, testing.AllocsPerRun(200, once), how)
		for r := range p {
			close(step[r])
			<-done
		}
	}
}

func TestManyStructuresOfNodes(t *testing.T) {
	// The ranks reduce more different forests than the cache of schedules keeps.
	const p, shards = 2, 64
	g := NewLocalGroup(p)
	for _, err := range onRanks(g, func(c *Comm) error {
		for round := range 3 {
			for absent := range shards {
				out := []int64{0}
				req := &Reduction[int64]{Name: "x", Op: Sum[int64](), Shards: shards, Out: out, Forest: []sharding.Entry[[]int64]{}}
				own := sharding.Split(shards, p, c.Rank())
				for s := own.Lo; s < own.Hi; s++ {
					if s != absent {
						req.Forest = append(req.Forest, sharding.Entry[[]int64]{Node: sharding.Leaf(s), Value: []int64{int64(s)}})
					}
				}
				// The entries of a rank may be in any order.
				rand.Shuffle(len(req.Forest), func(i, j int) { req.Forest[i], req.Forest[j] = req.Forest[j], req.Forest[i] })
				if err := AllReduce(c, req); err != nil {
					return err
				}
				if want := int64(shards*(shards-1)/2 - absent); out[0] != want {
					return fmt.Errorf("round %d without shard %d: the sum is %d, want %d", round, absent, out[0], want)
				}
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(g.plans.forests), maxSchedules)
}
