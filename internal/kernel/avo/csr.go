package main

import (
	"fmt"

	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// momentEntries is the number of entries that package kernel passes to one call of
// addMomentsCSR64; package kernel checks their columns before the call.
const momentEntries = 2048

// sparseRows writes the products of sparse rows with vectors. The columns of the entries of a
// row are not adjacent, so a register holds only one element. The assembly is faster than Go
// because it processes several rows together, and because columns are checked beforehand and
// not one by one.
func sparseRows() {
	highestColumn()
	dotCSR()
	addScaledCSR()
	addMomentsCSR()
}

// highestColumn writes the search for the largest of n columns. Columns are compared as
// unsigned numbers, so that a negative column is larger than every valid one.
func highestColumn() {
	function("highestColumn64", "returns the largest of n columns as unsigned numbers, n a multiple of 64 and not 0.",
		"func(col *int32, n int) uint32")
	col, n := argument("col"), argument("n")
	top := ymms(4)
	zero(top...)
	while(n, 64, func() {
		for i := range 8 {
			a.VPMAXUD(at(col, 32*i), top[i%4], top[i%4])
		}
		a.ADDQ(op.U32(256), col)
	})
	a.VPMAXUD(top[1], top[0], top[0])
	a.VPMAXUD(top[3], top[2], top[2])
	a.VPMAXUD(top[2], top[0], top[0])
	half := a.XMM()
	a.VEXTRACTI128(op.U8(1), top[0], half)
	a.VPMAXUD(top[0].AsX(), half, half)
	other := a.XMM()
	a.VPSHUFD(op.U8(0x4e), half, other)
	a.VPMAXUD(other, half, half)
	a.VPSHUFD(op.U8(0xb1), half, other)
	a.VPMAXUD(other, half, half)
	result := a.GP32()
	a.VMOVD(half, result)
	a.VZEROUPPER()
	a.Store(result, a.ReturnIndex(0))
	a.RET()
}

// entries has the pointers to the columns, the values and the vector w. The loops use one index
// for columns and values.
type entries struct{ col, val, w reg.GPVirtual }

// product returns the product of the entry at index p+ahead and the element of w for the column
// of this entry.
func (e entries) product(p reg.GPVirtual, ahead int) reg.VecVirtual {
	j, v := a.GP64(), a.XMM()
	a.MOVLQSX(atIndex(e.col, p, 4, 4*ahead), j)
	a.VMOVSD(atIndex(e.val, p, 8, 8*ahead), v)
	a.VMULSD(atIndex(e.w, j, 8, 0), v, v)
	return v
}

// dotCSR writes the inner products of rows with a vector. It processes four rows together up to
// the length of the shortest row, so that the latency of the additions of one row overlaps with
// additions of the other rows.
func dotCSR() {
	function("dotCSR64", "sets out[i] to the inner product of row i and w, for n rows whose entries begin at ptr[i].\n"+
		"It does not look at columns.", "func(ptr *int64, n int, col *int32, val, w, out *float64)")
	ptr, n, out := argument("ptr"), argument("n"), argument("out")
	e := entries{argument("col"), argument("val"), argument("w")}
	rest := func(p, end reg.GPVirtual, acc reg.VecVirtual) {
		labels++
		again, done := fmt.Sprintf("again%d", labels), fmt.Sprintf("rest%d", labels)
		a.CMPQ(p, end)
		a.JGE(op.LabelRef(done))
		a.Label(again)
		a.VADDSD(e.product(p, 0), acc, acc)
		a.INCQ(p)
		a.CMPQ(p, end)
		a.JLT(op.LabelRef(again))
		a.Label(done)
	}
	while(n, 4, func() {
		var p [4]reg.GPVirtual
		acc := []reg.VecVirtual{a.XMM(), a.XMM(), a.XMM(), a.XMM()}
		zero(acc...)
		least, length := a.GP64(), a.GP64()
		for r := range p {
			p[r] = a.GP64()
			a.MOVQ(at(ptr, 8*r), p[r])
			to := length
			if r == 0 {
				to = least
			}
			a.MOVQ(at(ptr, 8*r+8), to)
			a.SUBQ(p[r], to)
			if r > 0 {
				a.CMPQ(length, least)
				a.CMOVQLT(length, least)
			}
		}
		for _, step := range []int{2, 1} {
			while(least, step, func() {
				for ahead := range step {
					for r := range p {
						a.VADDSD(e.product(p[r], ahead), acc[r], acc[r])
					}
				}
				for r := range p {
					a.ADDQ(op.Imm(uint64(step)), p[r])
				}
			})
		}
		for r := range p {
			end := a.GP64()
			a.MOVQ(at(ptr, 8*r+8), end)
			rest(p[r], end, acc[r])
			a.VMOVSD(acc[r], at(out, 8*r))
		}
		a.ADDQ(op.Imm(32), ptr)
		a.ADDQ(op.Imm(32), out)
	})
	while(n, 1, func() {
		p, end, acc := a.GP64(), a.GP64(), a.XMM()
		zero(acc)
		a.MOVQ(at(ptr, 0), p)
		a.MOVQ(at(ptr, 8), end)
		rest(p, end, acc)
		a.VMOVSD(acc, at(out, 0))
		a.ADDQ(op.Imm(8), ptr)
		a.ADDQ(op.Imm(8), out)
	})
	done()
}

// addScaledCSR writes the sum of scaled rows. Entries are added one after the other, because
// the next row may have the same columns. Meanwhile the loop prefetches the entries after these
// rows, which the caller uses next; without that, the products would wait for memory.
func addScaledCSR() {
	function("addScaledCSR64", "adds row i times coef[i] to out, for n rows whose entries begin at ptr[i]. It does not\n"+
		"look at columns. It has what lies aheadCol bytes from each column, and aheadVal from each value, fetched.",
		"func(ptr *int64, n int, col *int32, val, coef, out *float64, aheadCol, aheadVal int)")
	ptr, n, coef := argument("ptr"), argument("n"), argument("coef")
	col, val, out := argument("col"), argument("val"), argument("out")
	nextCol, nextVal := argument("aheadCol"), argument("aheadVal")
	a.ADDQ(col, nextCol)
	a.ADDQ(val, nextVal)
	while(n, 1, func() {
		p, left, c := a.GP64(), a.GP64(), a.XMM()
		a.MOVQ(at(ptr, 0), p)
		a.MOVQ(at(ptr, 8), left)
		a.SUBQ(p, left)
		a.VMOVSD(at(coef, 0), c)
		for _, step := range []int{8, 1} {
			while(left, step, func() {
				a.PREFETCHT0(atIndex(nextVal, p, 8, 0))
				if step > 1 {
					a.PREFETCHT0(atIndex(nextCol, p, 4, 0))
				}
				for k := range step {
					j, v := a.GP64(), a.XMM()
					a.MOVLQSX(atIndex(col, p, 4, 4*k), j)
					a.VMULSD(atIndex(val, p, 8, 8*k), c, v)
					a.VADDSD(atIndex(out, j, 8, 0), v, v)
					a.VMOVSD(v, atIndex(out, j, 8, 0))
				}
				a.ADDQ(op.Imm(uint64(step)), p)
			})
		}
		a.ADDQ(op.Imm(8), ptr)
		a.ADDQ(op.Imm(8), coef)
	})
	done()
}

// addMomentsCSR writes the sums of entries and of their squares. The two sums of a column are
// adjacent and are updated by one instruction. Absolute values are compared as integers.
func addMomentsCSR() {
	function("addMomentsCSR64", "adds entries and their squares to sums, and makes top the largest absolute values,\n"+
		"for n rows whose entries begin at ptr[i]. It does not look at columns.",
		"func(ptr *int64, n int, col *int32, val, sums, top *float64)")
	ptr, n := argument("ptr"), argument("n")
	col, val, sums, top := argument("col"), argument("val"), argument("sums"), argument("top")
	while(n, 1, func() {
		p, left := a.GP64(), a.GP64()
		a.MOVQ(at(ptr, 0), p)
		a.MOVQ(at(ptr, 8), left)
		a.SUBQ(p, left)
		for _, step := range []int{4, 1} {
			while(left, step, func() {
				a.PREFETCHT0(atIndex(val, p, 8, 2048))
				a.PREFETCHT0(atIndex(col, p, 4, 4*momentEntries))
				for k := range step {
					j, pair, size := a.GP64(), a.GP64(), a.GP64()
					v, square := a.XMM(), a.XMM()
					a.MOVLQSX(atIndex(col, p, 4, 4*k), j)
					a.VMOVSD(atIndex(val, p, 8, 8*k), v)
					a.VMULSD(v, v, square)
					a.VUNPCKLPD(square, v, square)
					a.MOVQ(j, pair)
					a.SHLQ(op.Imm(4), pair)
					a.VADDPD(atIndex(sums, pair, 1, 0), square, square)
					a.VMOVUPD(square, atIndex(sums, pair, 1, 0))
					a.MOVQ(atIndex(val, p, 8, 8*k), size)
					a.BTRQ(op.Imm(63), size)
					labels++
					low := fmt.Sprintf("low%d", labels)
					a.CMPQ(size, atIndex(top, j, 8, 0))
					a.JLE(op.LabelRef(low))
					a.MOVQ(size, atIndex(top, j, 8, 0))
					a.Label(low)
				}
				a.ADDQ(op.Imm(uint64(step)), p)
			})
		}
		a.ADDQ(op.Imm(8), ptr)
	})
	done()
}
