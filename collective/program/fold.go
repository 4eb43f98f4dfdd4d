package program

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// FoldPlan is a fold over m leaves that can be run block by block. It computes the same
// expression as the steps from which it was compiled, but depth first. For balanced trees it
// needs only a logarithmic number of intermediate blocks.
type FoldPlan struct {
	Leaves int
	Steps  []FoldOp
	Blocks int // intermediate blocks needed, not counting the destination
}

// FoldOp is the step Dst = A ∘ B. An operand ≥ 0 is the number of a leaf; operand −1−k is
// intermediate block k. Dst is an intermediate block in the same form, or ToResult. The last
// step of a plan writes ToResult.
type FoldOp struct{ Dst, A, B int }

// ToResult is the destination of the last step.
const ToResult = int(^uint(0) >> 1)

// ErrFoldShape is wrapped by the error for steps that are not a tree over the leaves.
var ErrFoldShape = errors.New("the fold steps do not join every operand exactly once")

// CompileFold returns the plan for a fold over m leaves. It orders the steps depth first, left
// before right, and assigns a block to each intermediate value. The steps must join all leaves
// into slot 0. After a step, later steps must not use the right slot of that step.
func CompileFold(m int, steps []sharding.FoldStep) (*FoldPlan, error) {
	if m == 0 && len(steps) == 0 {
		return &FoldPlan{}, nil
	}
	if len(steps) != m-1 {
		return nil, fmt.Errorf("%w: %d steps for %d operands", ErrFoldShape, len(steps), m)
	}
	// value[s] is the value in slot s: the number of a leaf, or m plus the number of the step
	// that computed the value.
	value := make([]int, m)
	for s := range value {
		value[s] = s
	}
	pairs := make([][2]int, len(steps))
	for i, st := range steps {
		if min(st.Left, st.Right) < 0 || max(st.Left, st.Right) >= m || st.Left == st.Right ||
			value[st.Left] < 0 || value[st.Right] < 0 {
			return nil, fmt.Errorf("%w: step %d joins %d and %d", ErrFoldShape, i, st.Left, st.Right)
		}
		pairs[i] = [2]int{value[st.Left], value[st.Right]}
		value[st.Left], value[st.Right] = m+i, -1
	}
	if value[0] < 0 {
		return nil, fmt.Errorf("%w: slot 0 is used up", ErrFoldShape)
	}
	p := &FoldPlan{Leaves: m, Steps: make([]FoldOp, 0, len(steps))}
	if m > 1 {
		var free []int
		p.emit(pairs, m, value[0], &free)
		p.Steps[len(p.Steps)-1].Dst = ToResult
	}
	return p, nil
}

// emit appends the steps that compute value v, and returns the operand that has the result.
// pairs has the two operands of each step, and free has the unused blocks.
func (p *FoldPlan) emit(pairs [][2]int, m, v int, free *[]int) int {
	if v < m {
		return v
	}
	a := p.emit(pairs, m, pairs[v-m][0], free)
	b := p.emit(pairs, m, pairs[v-m][1], free)
	// The block of the left operand is reused first, since user operators are fastest if they
	// accumulate in place.
	for _, x := range [2]int{b, a} {
		if x < 0 {
			*free = append(*free, -1-x)
		}
	}
	k := p.Blocks
	if n := len(*free); n > 0 {
		k, *free = (*free)[n-1], (*free)[:n-1]
	} else {
		p.Blocks++
	}
	p.Steps = append(p.Steps, FoldOp{Dst: -1 - k, A: a, B: b})
	return -1 - k
}
