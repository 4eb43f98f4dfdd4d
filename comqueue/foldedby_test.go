package comqueue_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// part returns what a shard adds to element i. The bits of a sum of parts depend on the order
// of adding.
func part(shard, i int) float64 {
	return float64((shard*13+i*7)%101-50) * pow2((shard*29+i)%80-40)
}

// foldParts folds the parts of some shards up the tree and adds them to out.
func foldParts(ctx *comqueue.ComContext, shards sharding.Range, out []float64) {
	f := sharding.NewFolder(shards, func(left, right float64) float64 { return left + right }, nil)
	for i := range out {
		f.Reset(shards)
		for shard := shards.Lo; shard < shards.Hi; shard++ {
			if !ctx.Empty(shard) {
				f.Push(shard, part(shard, i))
			}
		}
		out[i] += f.Forest()[0].Value
	}
}

// TestFoldedBy requires the same bits if the function given to FoldedBy folds the parts of
// shards, at all nodes of the tree or at some, as with one buffer per shard. Each shard must be
// folded once.
func TestFoldedBy(t *testing.T) {
	sums := shared.Scratch[[]float64]("sums")
	const n = 9
	run := func(parallelism int, folds func(shards sharding.Range) bool) []uint64 {
		var got []uint64
		_, err := supersteps(t, parallelism, 3,
			do(func(ctx *comqueue.ComContext) { sums.Put(ctx, make([]float64, n)) }),
			comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				if folds(sharding.Range{Lo: shard, Hi: shard}) {
					return errors.New("the part of a shard must not be computed after fold has folded it")
				}
				for i := range out {
					out[i] += part(shard, i)
				}
				return nil
			}, comqueue.FoldedBy(func(ctx *comqueue.ComContext, shards sharding.Range, out []float64) (bool, error) {
				require.Equal(t, []sharding.Node{sharding.Cover(shards)[0]}, sharding.Cover(shards), "one node")
				if !folds(shards) {
					return false, nil
				}
				require.Equal(t, make([]float64, n), out, "zeros")
				foldParts(ctx, shards, out)
				return true, nil
			})),
			comqueue.AllReduce(sums),
			do(func(ctx *comqueue.ComContext) {
				if ctx.TaskID() == 0 {
					got = bits(sums.Get(ctx))
				}
			}))
		require.NoError(t, err)
		return got
	}
	want := run(1, func(sharding.Range) bool { return false })
	require.Len(t, want, n)
	for _, p := range parallelisms {
		require.Equal(t, want, run(p, func(sharding.Range) bool { return false }), "parallelism %d, fold refuses all nodes", p)
		require.Equal(t, want, run(p, func(sharding.Range) bool { return true }), "parallelism %d, fold accepts all nodes", p)
		if p > 1 {
			halves := func(s sharding.Range) bool { return s.Hi <= 8 && s.Lo < 8 }
			require.Equal(t, want, run(p, halves), "parallelism %d, fold accepts the first nodes", p)
		}
	}
}

// TestFoldedByFails requires that an error of the function given to FoldedBy fails the job, and
// that a nil function is reported as misuse.
func TestFoldedByFails(t *testing.T) {
	sums := shared.Scratch[[]float64]("sums")
	each := func(*comqueue.ComContext, int, []float64) error { return nil }
	fold := func(*comqueue.ComContext, sharding.Range, []float64) (bool, error) {
		return true, errors.New("no fold")
	}
	begin := do(func(ctx *comqueue.ComContext) { sums.Put(ctx, make([]float64, 2)) })
	_, err := supersteps(t, 2, 2, begin, comqueue.ForEachShard(sums, each, comqueue.FoldedBy(fold)), comqueue.AllReduce(sums))
	require.ErrorContains(t, err, "no fold")
	_, err = supersteps(t, 2, 2, begin, comqueue.ForEachShard(sums, each, comqueue.FoldedBy[float64](nil)), comqueue.AllReduce(sums))
	require.ErrorContains(t, err, "the function of FoldedBy is nil")
}
