package collective

import (
	"sync/atomic"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// foldBlock is the number of elements folded at a time. Intermediate values of a block
// stay in the cache, so that memory is read once and written once. It does not affect
// results, since folding is elementwise.
const foldBlock = 512

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

// reserve allocates the blocks that p needs, and a spare block, unless they exist. Each block
// has at least min(size, foldBlock) elements.
func (f *folder[T]) reserve(p *program.FoldPlan, size int) {
	size = min(size, foldBlock)
	for len(f.blocks) < p.Blocks+1 {
		f.blocks = append(f.blocks, nil)
	}
	for k := range f.blocks {
		if len(f.blocks[k]) < size {
			f.blocks[k] = make([]T, size)
		}
	}
}

// fold writes the fold of the leaves' elements [lo, hi) to the same elements of every slice of
// outs, and gives every NaN the same bits. A leaf may be exactly the memory of a slice of outs,
// and two slices of outs may be the same memory. If stop is not nil, it is checked before every
// block, and fold returns early once it holds a cause.
func (f *folder[T]) fold(p *program.FoldPlan, op *Op[T], leaves, outs [][]T, lo, hi int, stop *atomic.Pointer[cause]) {
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
		if p.Leaves == 1 { // result is the leaf, which must not be written
			result = outs[0][lo:end]
			copy(result, leaves[0][lo:end])
		}
		if op.kind != opSum || p.Leaves == 1 {
			kernel.OneNaN(result)
		}
		for _, out := range outs {
			if dst := out[lo:end]; &dst[0] != &result[0] {
				copy(dst, result)
			}
		}
	}
}

// foldBlock folds the elements [lo, hi) and returns the result, which is a slice of out, of a
// leaf, or of a block of the folder.
func (f *folder[T]) foldBlock(p *program.FoldPlan, op *Op[T], apply reducer[T], leaves [][]T, out []T, lo, hi int) []T {
	size := hi - lo
	result := out[lo:hi]
	if p.Leaves == 0 {
		for i := range result {
			result[i] = op.identity
		}
		return result
	}
	if p.Leaves == 1 {
		return leaves[0][lo:hi]
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		a, b := f.operand(s.A, leaves, lo, hi), f.operand(s.B, leaves, lo, hi)
		dst := result
		if s.Dst != program.ToResult {
			dst = f.blocks[-1-s.Dst][:size]
		}
		if &dst[0] == &b[0] {
			// dst is the right operand: accumulate in the spare block.
			dst = f.blocks[p.Blocks][:size]
		}
		switch {
		case op.kind == opSum: // fast path: needs no copy of the left operand
			kernel.SumTo(dst, a, b)
		case &dst[0] == &a[0]:
			apply(dst, b)
		default:
			copy(dst, a)
			apply(dst, b)
		}
		switch {
		case s.Dst == program.ToResult:
			result = dst
		case &dst[0] == &f.blocks[p.Blocks][0]:
			f.blocks[-1-s.Dst], f.blocks[p.Blocks] = f.blocks[p.Blocks], f.blocks[-1-s.Dst]
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
