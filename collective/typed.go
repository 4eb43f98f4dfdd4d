package collective

import (
	"sync"
	"unsafe"

	"github.com/superstep-ml/superstep/collective/execute"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// arithmetic is an operator on elements of one type, for code that handles elements as bytes.
type arithmetic interface {
	execute.Reducer

	// fill sets every element of out to the operator's identity.
	fill(out []byte)

	// oneNaN gives all NaNs in out the same bits.
	oneNaN(out []byte)

	// foldLeaves writes the fold of the leaves' elements [lo, hi) to the same elements of out.
	// out may be the memory of one of the leaves. Only one goroutine at a time may call
	// foldLeaves.
	foldLeaves(p *program.FoldPlan, leaves [][]byte, out []byte, lo, hi int)
}

// typedOp implements arithmetic.
type typedOp[T Number] struct {
	op     Op[T]
	apply  reducer[T]
	folder folder[T]
	leaves [][]T
	out    [1][]T
	blocks sync.Pool // holds *[foldBlock]T
}

func newTypedOp[T Number]() *typedOp[T] {
	return &typedOp[T]{folder: folder[T]{table: reducersOf[T]()}}
}

// set makes op the operator of t.
func (t *typedOp[T]) set(op Op[T]) {
	t.op, t.apply = op, op.fold
	if op.kind != opUser {
		t.apply = t.folder.table[op.kind]
	}
}

// Fold does dst[i] = left[i] ∘ right[i] and gives all NaNs the same bits.
func (t *typedOp[T]) Fold(dst, left, right []byte) {
	d, a, b := elementsOf[T](dst), elementsOf[T](left), elementsOf[T](right)
	for len(d) > foldBlock {
		t.foldBlock(d[:foldBlock], a[:foldBlock], b[:foldBlock])
		d, a, b = d[foldBlock:], a[foldBlock:], b[foldBlock:]
	}
	if len(d) > 0 {
		t.foldBlock(d, a, b)
	}
}

// foldBlock is Fold for at most foldBlock elements, so that the result is still in the cache
// when OneNaN reads it. It does not swap the operands, since an operator need not commute.
func (t *typedOp[T]) foldBlock(d, a, b []T) {
	switch {
	case t.op.kind == opSum:
		kernel.SumTo(d, a, b)
		return
	case &d[0] == &a[0]:
		t.apply(d, b)
	case &d[0] != &b[0]:
		copy(d, a)
		t.apply(d, b)
	default:
		t.foldOverRight(d, a)
	}
	kernel.OneNaN(d)
}

// foldOverRight does d[i] = a[i] ∘ d[i]. It uses a block for intermediate values.
func (t *typedOp[T]) foldOverRight(d, a []T) {
	block, ok := t.blocks.Get().(*[foldBlock]T)
	if !ok {
		block = new([foldBlock]T)
	}
	for len(d) > 0 {
		n := copy(block[:], a[:min(len(d), foldBlock)])
		t.apply(block[:n], d[:n])
		copy(d, block[:n])
		d, a = d[n:], a[n:]
	}
	t.blocks.Put(block)
}

func (t *typedOp[T]) fill(out []byte) {
	for x, i := elementsOf[T](out), 0; i < len(x); i++ {
		x[i] = t.op.identity
	}
}

func (t *typedOp[T]) oneNaN(out []byte) { kernel.OneNaN(elementsOf[T](out)) }

func (t *typedOp[T]) foldLeaves(p *program.FoldPlan, leaves [][]byte, out []byte, lo, hi int) {
	t.leaves = t.leaves[:0]
	for _, l := range leaves {
		t.leaves = append(t.leaves, elementsOf[T](l))
	}
	t.out[0] = elementsOf[T](out)
	t.folder.fold(p, &t.op, t.leaves, t.out[:], lo, hi, nil)
	clear(t.leaves)
	t.out[0] = nil
}

// bytesOf views elements as their bytes in memory.
func bytesOf[T Number](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// elementsOf views bytes as elements. The bytes are from bytesOf, or aligned for elements.
func elementsOf[T Number](b []byte) []T {
	var zero T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(zero)))
}
