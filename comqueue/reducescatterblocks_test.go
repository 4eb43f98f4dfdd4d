package comqueue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
)

// TestReduceScatterBlocks gives each subtask a block of a different length, including 0. It
// compares each element with the sum over the buffers of the subtasks.
func TestReduceScatterBlocks(t *testing.T) {
	from, into := shared.Scratch[[]int64]("from"), shared.Scratch[[]int64]("into")
	blocks, whole := shared.Scratch[[]int]("blocks"), shared.Scratch[[]int64]("whole")
	fill := func(ctx *comqueue.ComContext, shard int, out []int64) error {
		for i := range out {
			out[i] = int64(shard*1000 + i)
		}
		return nil
	}
	for _, p := range parallelisms {
		for _, shards := range []bool{false, true} {
			value := func(r, i int) int64 { return int64(r*1000 + i) }
			prepare := do(func(ctx *comqueue.ComContext) {
				lengths, n := make([]int, p), 0
				for r := range lengths {
					lengths[r] = (r*7 + ctx.StepNo()) % 5 * 3
					n += lengths[r]
				}
				blocks.Put(ctx, lengths)
				buffer := make([]int64, n)
				for i := range buffer {
					buffer[i] = value(ctx.TaskID(), i)
				}
				from.Put(ctx, buffer)
				whole.Put(ctx, make([]int64, n))
			})
			stages := []comqueue.Stage{prepare}
			if shards {
				stages = append(stages, comqueue.ForEachShard(from, fill), comqueue.ForEachShard(whole, fill), comqueue.AllReduce(whole))
			}
			stages = append(stages, comqueue.ReduceScatter(from, into, comqueue.Blocks(blocks)),
				comqueue.Do(func(ctx *comqueue.ComContext) error {
					lo, got := 0, into.Get(ctx)
					for _, l := range blocks.Get(ctx)[:ctx.TaskID()] {
						lo += l
					}
					if want := blocks.Get(ctx)[ctx.TaskID()]; len(got) != want {
						return fmt.Errorf("subtask %d has %d elements, want %d", ctx.TaskID(), len(got), want)
					}
					for i, v := range got {
						var want int64
						if shards {
							want = whole.Get(ctx)[lo+i]
						} else {
							for r := range p {
								want += value(r, lo+i)
							}
						}
						if v != want {
							return fmt.Errorf("element %d of subtask %d is %d, want %d", i, ctx.TaskID(), v, want)
						}
					}
					return nil
				}))
			_, err := supersteps(t, p, 3, stages...)
			require.NoError(t, err, "%d subtasks, shards %v", p, shards)
		}
	}
}

// TestInvalidReduceScatterBlocks requires errors that name the mistake in the block
// lengths.
func TestInvalidReduceScatterBlocks(t *testing.T) {
	from, into := shared.Scratch[[]int64]("from"), shared.Scratch[[]int64]("into")
	blocks := shared.Scratch[[]int]("blocks")
	for text, lengths := range map[string][]int{
		`"blocks" has the lengths of 1 blocks, and there are 2 subtasks`:                                        {10},
		`"blocks" has a block of -1 elements for subtask 1, where 5 of the 10 of buffer "from" are left`:        {5, -1},
		`"blocks" has a block of 8 elements for subtask 1, where 7 of the 10 of buffer "from" are left`:         {3, 8},
		`the blocks of "blocks" have 9 elements in all, buffer "from" has 10`:                                   {3, 6},
		`"blocks" has a block of 9223372036854775807 elements for subtask 1, where 7 of the 10 of buffer "from`: {3, 1<<63 - 1},
	} {
		_, err := supersteps(t, 2, 1, do(func(ctx *comqueue.ComContext) {
			from.Put(ctx, make([]int64, 10))
			blocks.Put(ctx, lengths)
		}), comqueue.ReduceScatter(from, into, comqueue.Blocks(blocks)))
		require.ErrorContains(t, err, text)
	}
	floats := shared.Scratch[[]float64]("floats")
	for text, stage := range map[string]comqueue.Stage{
		"Blocks is given, but every subtask gets the whole result":                         comqueue.AllReduce(from, comqueue.Blocks(blocks)),
		`Exact is given, but operator "sum" over float64 depends on the order of subtasks`: comqueue.AllReduce(floats, comqueue.Exact()),
		`Exact is given, but operator "prod" over int64 depends on the order of subtasks`:  comqueue.AllReduce(from, comqueue.Prod, comqueue.Exact()),
	} {
		_, err := supersteps(t, 2, 1, stage)
		require.ErrorContains(t, err, text)
	}
}

// TestExactReductionsAreNotMarked requires that the plan marks a reduction of whole buffers as
// depending on parallelism, unless the option Exact is given.
func TestExactReductionsAreNotMarked(t *testing.T) {
	buffer := shared.Scratch[[]int64]("buffer")
	for exact, marked := range map[bool]bool{false: true, true: false} {
		var options []comqueue.ReduceOption
		if exact {
			options = append(options, comqueue.Exact())
		}
		result, err := supersteps(t, 2, 1, do(func(ctx *comqueue.ComContext) { buffer.Put(ctx, []int64{1}) }), comqueue.AllReduce(buffer, options...))
		require.NoError(t, err)
		require.Equal(t, marked, strings.Contains(result.Plan.Text(), "depends on parallelism"))
	}
}
