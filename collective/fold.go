package collective

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// foldBlock is the number of elements folded at a time. A block of every operand
// in turn passes through the cache, intermediate values stay in it, and memory is
// read once and written once. It reaches no result, for folding is elementwise.
const foldBlock = 512

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

// reducer does dst[i] = dst[i] ∘ src[i] over slices of equal length that do not
// overlap.
type reducer[T Number] func(dst, src []T)

// reducers holds the built-in operators of one element type. It is made once per
// AllReducer, because taking the value of a generic function inside generic code
// allocates.
type reducers[T Number] [opUser]reducer[T]

func reducersOf[T Number]() reducers[T] {
	return reducers[T]{
		opSum:  kernel.AddTo[T],
		opProd: kernel.ProdTo[T],
		opMax:  kernel.MaxTo[T],
		opMin:  kernel.MinTo[T],
	}
}

// folder runs plans for one element type. It owns the intermediate blocks and is
// used by one goroutine at a time.
type folder[T Number] struct {
	table  reducers[T]
	blocks [][]T
}

// reserve makes sure that blocks for a plan exist, each of at least size
// elements, at most foldBlock. There is one more than the plan asks for, to spare.
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
	apply := reducer[T](op.fold)
	if op.kind != opUser {
		apply = f.table[op.kind]
	}
	f.reserve(p, hi-lo)
	for ; lo < hi; lo += foldBlock {
		if stop != nil && stop.Load() != nil {
			return
		}
		end := min(lo+foldBlock, hi)
		result := f.foldBlock(p, op, apply, leaves, outs[0], lo, end)
		for _, out := range outs {
			if dst := out[lo:end]; &dst[0] != &result[0] {
				copy(dst, result)
			}
		}
	}
}

// foldBlock folds one block and returns where the result is: in out, in a leaf, or
// in a block of the folder's.
func (f *folder[T]) foldBlock(p *foldPlan, op *Op[T], apply reducer[T], leaves [][]T, out []T, lo, hi int) []T {
	size := hi - lo
	result := out[lo:hi]
	if p.leaves == 0 {
		for i := range result {
			result[i] = op.identity
		}
		return result
	}
	if p.leaves == 1 {
		return leaves[0][lo:hi]
	}
	for i := range p.steps {
		s := &p.steps[i]
		a, b := f.operand(s.a, leaves, lo, hi), f.operand(s.b, leaves, lo, hi)
		dst := result
		if s.dst != toResult {
			dst = f.blocks[-1-s.dst][:size]
		}
		if &dst[0] == &b[0] {
			// The right operand lies where the left one is to accumulate.
			dst = f.blocks[p.blocks][:size]
		}
		switch {
		case &dst[0] == &a[0]:
			apply(dst, b)
		case op.kind == opSum:
			sum(dst, a, b)
		default:
			copy(dst, a)
			apply(dst, b)
		}
		switch {
		case s.dst == toResult:
			result = dst
		case &dst[0] == &f.blocks[p.blocks][0]:
			f.blocks[-1-s.dst], f.blocks[p.blocks] = f.blocks[p.blocks], f.blocks[-1-s.dst]
		}
	}
	return result
}

func (f *folder[T]) operand(x int, leaves [][]T, lo, hi int) []T {
	if x >= 0 {
		return leaves[x][lo:hi]
	}
	return f.blocks[-1-x][:hi-lo]
}

// sum does dst[i] = a[i] + b[i]: the commonest operator is spared the copy of its
// left operand, which counts where memory is the limit. The sums are those of
// kernel.AddTo.
func sum[T Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	i := 0
	for ; i+4 <= len(dst); i += 4 {
		d, x, y := (*[4]T)(dst[i:i+4]), (*[4]T)(a[i:i+4]), (*[4]T)(b[i:i+4])
		d[0] = x[0] + y[0]
		d[1] = x[1] + y[1]
		d[2] = x[2] + y[2]
		d[3] = x[3] + y[3]
	}
	for ; i < len(dst); i++ {
		dst[i] = a[i] + b[i]
	}
}
