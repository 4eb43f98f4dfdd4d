package comqueue

import (
	"fmt"

	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Blocks sets the block lengths of a ReduceScatter, which are about equal without this option:
// element r of the slice under lengths is the number of elements that subtask r gets. So
// elements that belong together, such as the bins of a feature, can go to one subtask. Every
// subtask must have put the same slice before the stage runs. The slice has one length per
// subtask, and their sum is the length of the buffer, or the value of Length.
func Blocks(lengths shared.Key[[]int]) ReduceOption { return blocksOption{lengths} }

type blocksOption struct{ lengths shared.Key[[]int] }

func (b blocksOption) applyReduce(c *reduceConfig) { c.blocks = &b.lengths }

// Exact declares that each subtask fills its whole buffer with a reduction over its rows, by an
// operator that gives the same bits in any order: Sum, Max or Min of integers, or Max or Min of
// floats. The result over all subtasks is then the same at any parallelism, and the plan does
// not mark it.
func Exact() ReduceOption { return exactOption{} }

type exactOption struct{}

func (exactOption) applyReduce(c *reduceConfig) { c.exact = true }

// misuseOfBlocks returns what is wrong with the options Blocks and Exact.
func misuseOfBlocks[T Number](c reduceConfig, scatters bool) error {
	if c.blocks != nil {
		if !scatters {
			return fmt.Errorf("Blocks is given, but every subtask gets the whole result")
		}
		if err := c.blocks.Err(); err != nil {
			return err
		}
	}
	if c.exact && !orderIndependent[T](c) {
		var zero T
		return fmt.Errorf("Exact is given, but operator %q over %T depends on the order of subtasks", c.opName(), zero)
	}
	return nil
}

// orderIndependent reports whether a reduction gives the same result in any order.
func orderIndependent[T Number](c reduceConfig) bool {
	var zero T
	_, integers := any(zero).(int64)
	return c.user == nil && (integers && c.op != Prod || c.op == Max || c.op == Min)
}

// lengths returns the lengths of the blocks of a buffer of n elements, or nil without the
// option Blocks.
func (c reduceConfig) lengths(ctx *ComContext, name string, n int) ([]int, error) {
	if c.blocks == nil {
		return nil, nil
	}
	lengths := c.blocks.Get(ctx)
	if len(lengths) != ctx.NumTask() {
		return nil, fmt.Errorf("%q has the lengths of %d blocks, and there are %d subtasks", c.blocks.Name(), len(lengths), ctx.NumTask())
	}
	remaining := n
	for r, l := range lengths {
		if l < 0 || l > remaining {
			return nil, fmt.Errorf("%q has a block of %d elements for subtask %d, where %d of the %d of buffer %q are left", c.blocks.Name(), l, r, remaining, n, name)
		}
		remaining -= l
	}
	if remaining != 0 {
		return nil, fmt.Errorf("the blocks of %q have %d elements in all, buffer %q has %d", c.blocks.Name(), n-remaining, name, n)
	}
	return lengths, nil
}

// share returns the range of the subtask's block in a buffer of n elements. lengths may be nil.
func share(ctx *ComContext, lengths []int, n int) sharding.Range {
	if lengths == nil {
		return sharding.Split(n, ctx.NumTask(), ctx.TaskID())
	}
	lo := 0
	for _, l := range lengths[:ctx.TaskID()] {
		lo += l
	}
	return sharding.Range{Lo: lo, Hi: lo + lengths[ctx.TaskID()]}
}
