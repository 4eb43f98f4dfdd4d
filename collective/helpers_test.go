package collective

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/shared/sharding"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onRanks runs body on all ranks of a group concurrently and returns the error of each rank.
func onRanks(g *LocalGroup, body func(c *Comm) error) []error {
	defer overdue.Watch("all ranks of a group in this process")()
	errs := make([]error, g.Size())
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = body(g.Rank(i)) })
	}
	wg.Wait()
	return errs
}

// hostile returns data whose sums depend on the order of addition in every element:
// magnitudes from 1e-8 to 1e16, of both signs.
func hostile(seed uint64, n int) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float64, n)
	for i := range x {
		x[i] = (r.Float64() + 0.5) * math.Pow(10, float64(r.IntN(25)-8))
		if r.IntN(2) == 0 {
			x[i] = -x[i]
		}
	}
	return x
}

// convert returns x with elements of type T. Integers get the low bits.
func convert[T Number](x []float64) []T {
	y := make([]T, len(x))
	for i, v := range x {
		switch any(y[i]).(type) {
		case float64, float32:
			y[i] = T(v)
		default:
			y[i] = T(int64(math.Float64bits(v)))
		}
	}
	return y
}

// chain returns an operator on integers that is neither commutative nor associative. With it,
// different trees give different results.
func chain() Op[int64] {
	return UserOp("chain", false, func(dst, src []int64) {
		for i := range dst {
			dst[i] = 31*dst[i] - 7*src[i] + 1
		}
	})
}

// lean returns an operator on floats that is neither commutative nor associative.
func lean() Op[float64] {
	return UserOp("lean", false, func(dst, src []float64) {
		for i := range dst {
			dst[i] = float64(dst[i]*0.75) + src[i]
		}
	})
}

// The functions below compute reference results. They use no schedules and no blocks.

// join returns the fold of two values. A nil value is absent.
func join[T Number](op Op[T], a, b []T) []T {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	x := append([]T(nil), a...)
	for i := range x {
		switch op.kind {
		case opSum:
			x[i] += b[i]
		case opProd:
			x[i] *= b[i]
		case opMax:
			x[i] = max(x[i], b[i])
		case opMin:
			x[i] = min(x[i], b[i])
		case opUser:
			op.fold(x[i:i+1], b[i:i+1])
		}
	}
	return x
}

// treeOverShards returns the value of the aligned tree over leaves. The number of leaves is a
// power of two. A nil leaf is absent.
func treeOverShards[T Number](op Op[T], leaves [][]T) []T {
	if len(leaves) == 1 {
		return leaves[0]
	}
	h := len(leaves) / 2
	return join(op, treeOverShards(op, leaves[:h]), treeOverShards(op, leaves[h:]))
}

// treeOverRanks returns the value of the canonical tree over ranks. x[r] is the value of rank
// r.
func treeOverRanks[T Number](op Op[T], x [][]T) []T {
	q := 1
	for 2*q <= len(x) {
		q *= 2
	}
	var y [][]T
	for i, r := 0, len(x)-q; i < len(x); i++ {
		if i < 2*r {
			y = append(y, join(op, x[i], x[i+1]))
			i++
		} else {
			y = append(y, x[i])
		}
	}
	return treeOverShards(op, y)
}

// bitsOf returns the bytes of x, so that floats are compared by their bits.
func bitsOf[T Number](x []T) []byte { return append([]byte{}, bytesOf(x)...) }

// rankForest returns the forest of rank r of p ranks over the given number of shards. The data
// is hostile. One in five shards is empty.
func rankForest(p, r, shards, n int) []sharding.Entry[[]float64] {
	forest := []sharding.Entry[[]float64]{}
	own := sharding.Split(shards, p, r)
	for s := own.Lo; s < own.Hi; s++ {
		if s%5 != 3 {
			forest = append(forest, sharding.Entry[[]float64]{Node: sharding.Leaf(s), Value: hostile(uint64(100+s), n)})
		}
	}
	return forest
}
