package collective

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/superstep-ml/superstep/shared"
)

// foldBlock is the number of elements folded at a time. A block of every operand
// in turn passes through the cache, intermediate values stay in it, and memory is
// read once and written once. It reaches no result, for folding is elementwise.
const foldBlock = 2048

// foldPlan is a fold over m leaves, ready to be run block by block: the same
// expression as the steps it was compiled from, evaluated depth first, so that it
// needs only a logarithmic number of intermediate blocks.
type foldPlan struct {
	leaves int
	steps  []foldOp
	blocks int // intermediate blocks needed, not counting the destination
}

// foldOp is dst = a ∘ b. Operands ≥ 0 are leaves; operand −1−k is intermediate
// block k. The last step of a plan writes toResult.
type foldOp struct{ dst, a, b int }

const toResult = int(^uint(0) >> 1)

// errFoldShape is the complaint about steps that are no tree over the leaves.
var errFoldShape = errors.New("the fold steps do not join every operand exactly once")

// compileFold orders the steps of a fold over m leaves depth first, left before
// right, and gives each intermediate value a block. The steps must join all
// leaves into slot 0, each right slot being used up.
func compileFold(m int, steps []shared.FoldStep) (*foldPlan, error) {
	if m == 0 && len(steps) == 0 {
		return &foldPlan{}, nil
	}
	if len(steps) != m-1 {
		return nil, fmt.Errorf("%w: %d steps for %d operands", errFoldShape, len(steps), m)
	}
	// value[s] is what slot s holds: a leaf, or m + the step that made it.
	value := make([]int, m)
	for s := range value {
		value[s] = s
	}
	pairs := make([][2]int, len(steps))
	for i, st := range steps {
		if min(st.Left, st.Right) < 0 || max(st.Left, st.Right) >= m || st.Left == st.Right ||
			value[st.Left] < 0 || value[st.Right] < 0 {
			return nil, fmt.Errorf("%w: step %d joins %d and %d", errFoldShape, i, st.Left, st.Right)
		}
		pairs[i] = [2]int{value[st.Left], value[st.Right]}
		value[st.Left], value[st.Right] = m+i, -1
	}
	if value[0] < 0 {
		return nil, fmt.Errorf("%w: slot 0 is used up", errFoldShape)
	}
	p := &foldPlan{leaves: m, steps: make([]foldOp, 0, len(steps))}
	if m > 1 {
		var free []int
		p.emit(pairs, m, value[0], &free)
		p.steps[len(p.steps)-1].dst = toResult
	}
	return p, nil
}

// emit appends the steps that evaluate v and returns the operand holding it.
func (p *foldPlan) emit(pairs [][2]int, m, v int, free *[]int) int {
	if v < m {
		return v
	}
	a := p.emit(pairs, m, pairs[v-m][0], free)
	b := p.emit(pairs, m, pairs[v-m][1], free)
	// The left operand's block is taken again first: accumulating in place is
	// what operators of the user do best.
	for _, x := range [2]int{b, a} {
		if x < 0 {
			*free = append(*free, -1-x)
		}
	}
	k := p.blocks
	if n := len(*free); n > 0 {
		k, *free = (*free)[n-1], (*free)[:n-1]
	} else {
		p.blocks++
	}
	p.steps = append(p.steps, foldOp{dst: -1 - k, a: a, b: b})
	return -1 - k
}

// folder runs plans for one element type. It owns the intermediate blocks and is
// used by one goroutine at a time.
type folder[T Number] struct {
	table  kernels[T]
	blocks [][]T
}

// reserve makes sure that blocks for a plan exist, each of at least size
// elements, at most foldBlock. One more than the plan asks for holds the results
// of operators that cannot write elsewhere than over their left operand.
func (f *folder[T]) reserve(p *foldPlan, size int) {
	size = min(size, foldBlock)
	for len(f.blocks) < p.blocks+1 {
		f.blocks = append(f.blocks, nil)
	}
	for k := range f.blocks {
		if len(f.blocks[k]) < size {
			f.blocks[k] = make([]T, size)
		}
	}
}

// fold writes the fold of the leaves' elements [lo, hi) to the same elements of
// every slice of outs. A leaf may be the same memory as an out, element for
// element; two outs may be one. stop, if not nil, is looked at before every block,
// and ends the work early once it holds a cause.
func (f *folder[T]) fold(p *foldPlan, op *Op[T], leaves, outs [][]T, lo, hi int, stop *atomic.Pointer[cause]) {
	if len(outs) == 0 || lo >= hi {
		return
	}
	f.reserve(p, hi-lo)
	for ; lo < hi; lo += foldBlock {
		if stop != nil && stop.Load() != nil {
			return
		}
		f.foldBlock(p, op, leaves, outs, lo, min(lo+foldBlock, hi))
	}
}

func (f *folder[T]) foldBlock(p *foldPlan, op *Op[T], leaves, outs [][]T, lo, hi int) {
	size := hi - lo
	result := outs[0][lo:hi]
	switch {
	case p.leaves == 0:
		for i := range result {
			result[i] = op.identity
		}
	case p.leaves == 1:
		result = leaves[0][lo:hi]
	case op.kind == opUser:
		// The operator writes over its left operand, which is not ours to
		// overwrite when it is a leaf, nor is the right one when it shares memory
		// with outs[0]: hence a block for the result too.
		result = f.blocks[p.blocks][:size]
		f.foldUser(p, op, leaves, result, lo, hi)
	default:
		apply := f.table[op.kind]
		for i := range p.steps {
			s := &p.steps[i]
			dst := result
			if s.dst != toResult {
				dst = f.blocks[-1-s.dst][:size]
			}
			apply(dst, f.operand(s.a, leaves, lo, hi), f.operand(s.b, leaves, lo, hi))
		}
	}
	for _, out := range outs {
		if dst := out[lo:hi]; &dst[0] != &result[0] {
			copy(dst, result)
		}
	}
}

// foldUser runs a plan with an operator that takes two operands.
func (f *folder[T]) foldUser(p *foldPlan, op *Op[T], leaves [][]T, result []T, lo, hi int) {
	size := hi - lo
	for i := range p.steps {
		s := &p.steps[i]
		dst := result
		if s.dst != toResult {
			dst = f.blocks[-1-s.dst][:size]
		}
		a, b := f.operand(s.a, leaves, lo, hi), f.operand(s.b, leaves, lo, hi)
		if s.b < 0 && s.b == s.dst {
			// The block of the right operand is the one to be written: the left
			// operand accumulates in the spare block first.
			spare := f.blocks[p.blocks][:size]
			copy(spare, a)
			op.fold(spare, b)
			copy(dst, spare)
			continue
		}
		if &dst[0] != &a[0] {
			copy(dst, a)
		}
		op.fold(dst, b)
	}
}

func (f *folder[T]) operand(x int, leaves [][]T, lo, hi int) []T {
	if x >= 0 {
		return leaves[x][lo:hi]
	}
	return f.blocks[-1-x][:hi-lo]
}
