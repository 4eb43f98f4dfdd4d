package collective_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// reduction is an AllReduce of values for which the bits of the result depend on the order of
// folding. It folds either whole buffers or the values of shards, some of which are empty.
type reduction struct {
	n, shards int // number of elements, and number of shards, or 0 if whole buffers are folded
	by        string
}

// leafOf returns the n values of shard s, or nil if the shard is empty.
func leafOf[T collective.Number](s, n int) []T {
	if s%5 == 3 {
		return nil
	}
	return hostile[T](uint64(1000+s), n)
}

// reduceBits executes a reduction on all ranks, requires that all ranks get the same bits, and
// returns the bits.
func reduceBits[T collective.Number](t *testing.T, w *testGroup, op collective.Op[T], x reduction) string {
	t.Helper()
	outs := make([][]T, w.p)
	w.run(t, func(c *collective.Comm) error {
		r := c.Rank()
		outs[r] = make([]T, x.n)
		req := &collective.Reduction[T]{Name: "x", Op: op, Out: outs[r], Shards: x.shards, Algorithm: x.by}
		if x.shards == 0 {
			req.Whole = hostile[T](uint64(r), x.n)
			return collective.AllReduce(c, req)
		}
		own := sharding.Split(x.shards, w.p, r)
		for s := own.Lo; s < own.Hi; s++ {
			if leaf := leafOf[T](s, x.n); leaf != nil {
				req.Forest = append(req.Forest, sharding.Entry[[]T]{Node: sharding.Leaf(s), Value: leaf})
			}
		}
		return collective.AllReduce(c, req)
	})
	for r := range outs {
		require.Equal(t, bitsOf(outs[0]), bitsOf(outs[r]), "rank %d of %s must have the bits of rank 0 in %+v", r, w.name, x)
	}
	return bitsOf(outs[0])
}

// folded computes the result of a reduction from its definition, by recursion over the aligned
// binary tree over shards or the canonical tree over ranks. It returns the bits of the result.
func folded[T collective.Number](join func(a, b T) T, p int, x reduction) string {
	both := func(a, b []T) []T {
		if a == nil || b == nil {
			return append(a, b...)
		}
		y := make([]T, len(a))
		for i := range y {
			y[i] = join(a[i], b[i])
		}
		return y
	}
	var leaves [][]T
	for s := range x.shards {
		leaves = append(leaves, leafOf[T](s, x.n))
	}
	if x.shards == 0 {
		pairs := p // the next lines reduce it to the number of pairs that are merged first
		for pairs&(pairs-1) != 0 {
			pairs &= pairs - 1
		}
		pairs = p - pairs
		for r := 0; r < p; r++ {
			leaf := hostile[T](uint64(r), x.n)
			if r < 2*pairs {
				r++
				leaf = both(leaf, hostile[T](uint64(r), x.n))
			}
			leaves = append(leaves, leaf)
		}
	}
	for len(leaves) > 1 {
		half := make([][]T, len(leaves)/2)
		for i := range half {
			half[i] = both(leaves[2*i], leaves[2*i+1])
		}
		leaves = half
	}
	return bitsOf(append(make([]T, 0, x.n), leaves[0]...))
}

// nonAssociative is an operator that is neither commutative nor associative.
func nonAssociative[T collective.Number](a, b T) T { return a - T(3)*b + a*T(2) }

func nonAssociativeOp[T collective.Number]() collective.Op[T] {
	return collective.UserOp("lean", false, func(dst, src []T) {
		for i := range dst {
			dst[i] = nonAssociative(dst[i], src[i])
		}
	})
}

// TestTheSameBitsWhereverRanksLive reduces the same data in shared memory, and among ranks that
// are distributed over one to six processes in blocks or cyclically. It uses the group's choice
// of algorithm and every canonical algorithm. All results must have the same bits.
func TestTheSameBitsWhereverRanksLive(t *testing.T) {
	t.Parallel()
	sizes := []int{6}
	if testsize.Soak {
		sizes = []int{2, 3, 4, 5, 6, 7, 8}
	}
	for _, p := range sizes {
		worlds := []*testGroup{inMemory(p)}
		for n := 1; n <= p; n++ {
			if p == 6 && n > 3 && n < 6 && !testsize.Soak {
				continue
			}
			worlds = append(worlds, overTCP(t, p, blockLayout(p, n)))
			if n > 1 && n < p && !testsize.Few {
				worlds = append(worlds, overTCP(t, p, cyclicLayout(p, n)))
			}
		}
		if p == 6 {
			worlds = append(worlds, overTCP(t, p, [][]int{{0, 5}, {1, 2, 3, 4}}), overTCP(t, p, [][]int{{3}, {5, 0, 4, 1, 2}}))
		}
		for k, w := range worlds {
			samePlaces(t, w, "sum", collective.Sum[float64](), func(a, b float64) float64 { return a + b }, k)
			samePlaces(t, w, "sum", collective.Sum[float32](), func(a, b float32) float32 { return a + b }, k+1)
			samePlaces(t, w, "sum", collective.Sum[uint8](), func(a, b uint8) uint8 { return a + b }, k+2)
			samePlaces(t, w, "max", collective.Max[float64](), func(a, b float64) float64 { return max(a, b) }, k)
			samePlaces(t, w, "lean", nonAssociativeOp[int64](), nonAssociative[int64], k+1)
			samePlaces(t, w, "lean", nonAssociativeOp[int32](), nonAssociative[int32], k+2)
			w.close(t)
		}
	}
}

// samePlaces tests the reductions of one type and operator on one group.
func samePlaces[T collective.Number](t *testing.T, w *testGroup, what string, op collective.Op[T], join func(a, b T) T, k int) {
	t.Helper()
	var names []string
	for _, name := range named(program.AllReduce, algorithm.Params{P: w.p}) {
		if canonical(name, w.p) {
			names = append(names, name)
		}
	}
	for i, shards := range []int{0, 4, 16, 64} {
		if !sample(k+i, testsize.Raced(2, 4)) {
			continue
		}
		for _, n := range []int{0, 1, 37, 5000} {
			want := ""
			for _, name := range names {
				k++
				if name != "" && k%4 != 0 { // other groups test the other cases
					continue
				}
				x := reduction{n, shards, name}
				if shards > 0 && !takesForests(name) {
					continue // skipped, because with this algorithm each rank first folds its own data
				}
				if want == "" {
					want = folded(join, w.p, x)
				}
				require.True(t, want == reduceBits(t, w, op, x), "%s of %T in %+v, %s", what, *new(T), x, w.name)
			}
		}
	}
}

// takesForests reports whether an algorithm can fold, in the tree over shards, the values of
// any set of shards.
func takesForests(name string) bool {
	a, err := algorithm.Find(program.AllReduce, name)
	return name == "" || err == nil && a.Forests == algorithm.AnyForest
}

// TestAnotherOrderHasOtherBits shows that TestTheSameBitsWhereverRanksLive can fail. It
// requires that, for some data of that test, folding the ranks one after another gives other
// bits than the tree.
func TestAnotherOrderHasOtherBits(t *testing.T) {
	t.Parallel()
	x := reduction{n: 37}
	inTurn := hostile[float64](0, x.n)
	for r := 1; r < 6; r++ {
		for i, v := range hostile[float64](uint64(r), x.n) {
			inTurn[i] += v
		}
	}
	require.NotEqual(t, bitsOf(inTurn), folded(func(a, b float64) float64 { return a + b }, 6, x))
	require.NotEqual(t, fmt.Sprint(nonAssociative[int64](1, 2)), fmt.Sprint(nonAssociative[int64](2, 1)))
}
