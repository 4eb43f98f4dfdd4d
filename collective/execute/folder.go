package execute

import "github.com/superstep-ml/superstep/collective/program"

// foldBytes is the number of bytes of each operand that are folded at a time. Intermediate
// values of that size stay in the first-level cache, so that each operand is read from memory
// once and the result is written once, for any number of operands. foldBytes does not affect
// results, since folding is elementwise.
const foldBytes = 8 << 10

// folder runs fold plans. Its memory grows to the size that the plans need.
type folder struct {
	leaves [][]byte // the operands; nil for an absent operand
	values [][]byte // values of the intermediate blocks; nil for an absent value
	blocks [][]byte // memory of the intermediate blocks
}

// operands returns a slice for the memory of n operands.
func (f *folder) operands(n int) [][]byte {
	if n > len(f.leaves) {
		f.leaves = make([][]byte, n)
	}
	return f.leaves[:n]
}

// reserve allocates n blocks of size bytes, unless they exist.
func (f *folder) reserve(n, size int) {
	if n > len(f.blocks) {
		f.blocks = append(f.blocks, make([][]byte, n-len(f.blocks))...)
		f.values = make([][]byte, n)
	}
	for k := range n {
		if len(f.blocks[k]) < size {
			f.blocks[k] = aligned(size)
		}
	}
}

// fold writes the fold of the bytes [lo, hi) of all leaves to the bytes [lo, hi) of dst. A leaf
// may be the same memory as dst. At least one leaf is not nil.
func (f *folder) fold(plan *program.FoldPlan, op *Operation, leaves [][]byte, dst []byte, lo, hi int) {
	size := hi - lo
	if plan.Blocks > 0 {
		size = min(size, blockOf(foldBytes, op.Elem))
		f.reserve(plan.Blocks, size)
	}
	for ; lo < hi; lo += size {
		end := min(lo+size, hi)
		copyUnlessSame(dst[lo:end], f.foldBlock(plan, op.Reducer, leaves, dst, lo, end))
	}
}

// foldBlock folds the bytes [lo, hi) of the leaves and returns the result, which is in dst, in
// a leaf or in a block.
func (f *folder) foldBlock(plan *program.FoldPlan, reducer Reducer, leaves [][]byte, dst []byte, lo, hi int) []byte {
	operand := func(x int) []byte {
		switch {
		case x < 0:
			return f.values[-1-x]
		case leaves[x] == nil:
			return nil
		default:
			return leaves[x][lo:hi]
		}
	}
	if plan.Leaves == 1 {
		return operand(0)
	}
	var result []byte
	for i := range plan.Steps {
		s := &plan.Steps[i]
		a, b := operand(s.A), operand(s.B)
		if a != nil && b != nil {
			to := dst[lo:hi]
			if s.Dst != program.ToResult {
				to = f.blocks[-1-s.Dst][:hi-lo]
			}
			reducer.Fold(to, a, b)
			result = to
		} else if result = a; a == nil {
			result = f.pass(b, s.B, s.Dst)
		} else {
			result = f.pass(a, s.A, s.Dst)
		}
		if s.Dst != program.ToResult {
			f.values[-1-s.Dst] = result
		}
	}
	return result
}

// pass makes the value of an operand the result of a step whose other operand is absent. If the
// operand is in a block other than dst, the block of the result, the two blocks exchange their
// memory. This is possible because later steps do not use the block of the operand.
func (f *folder) pass(value []byte, operand, dst int) []byte {
	if operand < 0 && dst != program.ToResult && operand != dst {
		a, b := -1-operand, -1-dst
		f.blocks[a], f.blocks[b] = f.blocks[b], f.blocks[a]
	}
	return value
}

// reduce folds the operands of a step, segment by segment.
func (h *executor) reduce(s *step) error {
	if err := h.await(s, 0); err != nil {
		return err
	}
	r := h.r
	leaves := h.operands(len(s.src))
	if r.forest {
		if done, err := h.reduceForest(s, leaves); done || err != nil {
			return err
		}
	} else {
		for i, f := range s.src {
			leaves[i] = r.bytes(f)
		}
	}
	dst := r.bytes(s.dst)
	n := r.segments(len(dst))
	for k := range n {
		if err := h.await(s, k); err != nil {
			return err
		}
		lo := k * r.segment
		h.fold(s.plan, r.op, leaves, dst, lo, min(lo+r.segment, len(dst)))
		h.publish(s, k, n)
	}
	return nil
}
