package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// startsAhead is the number of rows by which the start of the slots of a row is prefetched
// before the row is added. slotsAhead is this number for the slots themselves.
const (
	startsAhead = 32 // equals slotsAhead of package kernel
	slotsAhead  = 12
)

// slots writes the functions on packed pairs of sparse rows.
func slots() {
	addSlots()
	unpackPairs("takePairs", "sets two integers of to to the halves of each of n packed sums, a multiple of four, which become 0.", true)
	sumOfPairs()
}

// addSlots writes the function that adds the pair of each listed row to the sums of its slots.
func addSlots() {
	function("addSlots", "adds the pairs of the n listed rows to the sums of their slots, of which the number first is at hist.\n"+
		"The list goes on for 32 rows.",
		"func(hist *int64, first int, start *int64, slots *uint32, pairs *int64, rows *int32, n int)")
	hist, first := argument("hist"), argument("first")
	start, slots, pairs, rows, n := argument("start"), argument("slots"), argument("pairs"), argument("rows"), argument("n")
	a.SHLQ(op.Imm(3), first)
	a.SUBQ(first, hist)
	while(n, 1, func() {
		row, from, to, value := a.GP64(), a.GP64(), a.GP64(), a.GP64()
		a.MOVLQSX(at(rows, 4*startsAhead), row)
		a.PREFETCHT0(atIndex(start, row, 8, 0))
		a.MOVLQSX(at(rows, 4*slotsAhead), row)
		a.PREFETCHT0(atIndex(pairs, row, 8, 0))
		a.MOVQ(atIndex(start, row, 8, 0), from)
		for line := range 3 {
			a.PREFETCHT0(atIndex(slots, from, 4, 64*line))
		}
		a.MOVLQSX(at(rows, 0), row)
		a.MOVQ(atIndex(pairs, row, 8, 0), value)
		a.MOVQ(atIndex(start, row, 8, 0), from)
		a.MOVQ(atIndex(start, row, 8, 8), to)
		a.SUBQ(from, to)
		a.LEAQ(atIndex(slots, from, 4, 0), from)
		for _, step := range []int{4, 1} {
			while(to, step, func() {
				for i := range step {
					slot := a.GP64()
					a.MOVL(at(from, 4*i), slot.As32())
					a.ADDQ(value, atIndex(hist, slot, 8, 0))
				}
				a.ADDQ(op.Imm(uint64(4*step)), from)
			})
		}
		a.ADDQ(op.Imm(4), rows)
	})
	done()
}

// unpackPairs writes the loop that unpacks packed sums into pairs of integers. If clears is
// set, the pairs are overwritten and the packed sums are set to 0; otherwise the halves are
// added to the pairs.
func unpackPairs(name, doc string, clears bool) {
	function(name, doc, "func(to *int64, from *int64, n int)")
	to, from, n := argument("to"), argument("from"), argument("n")
	carry, zeros := a.YMM(), reg.VecVirtual(nil)
	one := a.GP64()
	a.MOVQ(op.U64(1<<31), one)
	a.VMOVQ(one, carry.AsX())
	a.VPBROADCASTQ(carry.AsX(), carry)
	if clears {
		zeros = a.YMM()
		a.VPXOR(zeros, zeros, zeros)
	}
	while(n, 4, func() {
		v, g := a.YMM(), a.YMM()
		a.VMOVDQU(at(from, 0), v)
		// The upper half is g if the lower half, as an unsigned number, is below 2^31, and g-1
		// otherwise. So 2^31 is added to the word. In the second case this carries 1 into the
		// upper half.
		a.VPADDQ(carry, v, g)
		a.VPSHUFD(op.U8(0xf5), g, g)     // each upper half in both halves
		a.VPBLENDD(op.U8(0xaa), g, v, g) // h0 g0 h1 g1 h2 g2 h3 g3
		a.VPSHUFD(op.U8(0xb1), g, g)     // g0 h0 g1 h1 g2 h2 g3 h3
		low, high := a.YMM(), a.YMM()
		a.VPMOVSXDQ(g.AsX(), low)
		upper := a.XMM()
		a.VEXTRACTI128(op.U8(1), g, upper)
		a.VPMOVSXDQ(upper, high)
		if clears {
			a.VMOVDQU(zeros, at(from, 0))
		} else {
			a.VPADDQ(at(to, 0), low, low)
			a.VPADDQ(at(to, 32), high, high)
		}
		a.VMOVDQU(low, at(to, 0))
		a.VMOVDQU(high, at(to, 32))
		a.ADDQ(op.Imm(32), from)
		a.ADDQ(op.Imm(64), to)
	})
	done()
}

// sumOfPairs writes the sum of pairs of integers.
func sumOfPairs() {
	function("sumOfPairs", "sets two integers to the sums of pairs, n integers in all, a multiple of eight, and the third to 0 if all are 0.",
		"func(pairs *int64, n int, sums *int64)")
	pairs, n, sums := argument("pairs"), argument("n"), argument("sums")
	acc, any := ymms(2), ymms(2)
	zero(acc...)
	zero(any...)
	while(n, 8, func() {
		for i := range acc {
			v := a.YMM()
			a.VMOVDQU(at(pairs, 32*i), v)
			a.VPADDQ(v, acc[i], acc[i])
			a.VPOR(v, any[i], any[i])
		}
		a.ADDQ(op.Imm(64), pairs)
	})
	half := a.XMM()
	a.VPADDQ(acc[1], acc[0], acc[0])
	a.VEXTRACTI128(op.U8(1), acc[0], half)
	a.VPADDQ(acc[0].AsX(), half, half)
	a.VMOVDQU(half, at(sums, 0))
	a.VPOR(any[1], any[0], any[0])
	a.VEXTRACTI128(op.U8(1), any[0], half)
	a.VPOR(any[0].AsX(), half, half)
	other := a.XMM()
	a.VPSHUFD(op.U8(0x4e), half, other)
	a.VPOR(other, half, half)
	a.VMOVQ(half, at(sums, 16))
	done()
}
