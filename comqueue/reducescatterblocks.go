package comqueue

import (
	"fmt"

	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Blocks sets the block lengths of a ReduceScatter: subtask r gets as many elements as the
// slice under the key has at r, instead of blocks of about equal length. So elements that
// belong together, such as the bins of a feature, go to one subtask. Every subtask must have
// put the same lengths before the stage runs, one for each subtask. They sum to the length of
// the buffer, or to the value of Length.
func Blocks(lengths shared.Key[[]int]) ReduceOption { return blocksOption{lengths} }

type blocksOption struct{ lengths shared.Key[[]int] }

func (b blocksOption) applyReduce(c *reduceConfig) { c.blocks = &b.lengths }

// Exact says that a buffer of integers that each subtask fills as a whole is a reduction over
// the subtask's rows. The result over all subtasks is then the same at any parallelism, and the
// plan does not mark it. It goes with the operators Sum, Max and Min.
func Exact() ReduceOption { return exactOption{} }

type exactOption struct{}

func (exactOption) applyReduce(c *reduceConfig) { c.exact = true }

// misuseOfBlocks returns what is wrong with the options of this file.
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

// lengths returns the lengths of the blocks of n elements, or nil if they follow from n.
func (c reduceConfig) lengths(ctx *ComContext, name string, n int) ([]int, error) {
	if c.blocks == nil {
		return nil, nil
	}
	lengths := c.blocks.Get(ctx)
	if len(lengths) != ctx.NumTask() {
		return nil, fmt.Errorf("%q has the lengths of %d blocks, and there are %d subtasks", c.blocks.Name(), len(lengths), ctx.NumTask())
	}
	left := n
	for r, l := range lengths {
		if l < 0 || l > left {
			return nil, fmt.Errorf("%q has a block of %d elements for subtask %d, where %d of the %d of buffer %q are left", c.blocks.Name(), l, r, left, n, name)
		}
		left -= l
	}
	if left != 0 {
		return nil, fmt.Errorf("the blocks of %q have %d elements in all, buffer %q has %d", c.blocks.Name(), n-left, name, n)
	}
	return lengths, nil
}

// share returns the range of the subtask's block of n elements; lengths may be nil.
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
