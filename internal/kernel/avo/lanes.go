package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The functions of this file are the vocabulary of the elementary functions:
// each returns a new register of four float64, or four 64-bit integers. Operands
// are registers or constants in memory.

type vec = reg.VecVirtual

// constants are the data of the file being written, by the bits of the value.
var constants map[uint64]op.Mem

const rodata = attr.RODATA | attr.NOPTR

// bitsOf is four copies of a 64-bit constant.
func bitsOf(bits uint64) op.Mem {
	if m, ok := constants[bits]; ok {
		return m
	}
	m := a.StaticGlobal(fmt.Sprintf("c%016x", bits))
	a.DataAttributes(rodata)
	for range 4 {
		a.AppendDatum(op.U64(bits))
	}
	constants[bits] = m
	return m
}

// num is four copies of a number.
func num(x float64) op.Mem { return bitsOf(math.Float64bits(x)) }

// load returns a register with an operand.
func load(x op.Op) vec {
	if v, ok := x.(vec); ok {
		return v
	}
	v := a.YMM()
	a.VMOVUPD(x, v)
	return v
}

// binary computes x op y; only y may be in memory.
func binary(instruction func(ops ...op.Op), x, y op.Op) vec {
	v := a.YMM()
	instruction(y, load(x), v)
	return v
}

// commuting is binary where a constant may stand on either side.
func commuting(instruction func(ops ...op.Op), x, y op.Op) vec {
	if _, ok := x.(op.Mem); ok {
		x, y = y, x
	}
	return binary(instruction, x, y)
}

func add(x, y op.Op) vec { return commuting(a.VADDPD, x, y) }
func sub(x, y op.Op) vec { return binary(a.VSUBPD, x, y) }
func mul(x, y op.Op) vec { return commuting(a.VMULPD, x, y) }
func div(x, y op.Op) vec { return binary(a.VDIVPD, x, y) }
func and(x, y op.Op) vec { return commuting(a.VANDPD, x, y) }
func or(x, y op.Op) vec  { return commuting(a.VORPD, x, y) }

// plus and minus are of 64-bit integers.
func plus(x, y op.Op) vec  { return commuting(a.VPADDQ, x, y) }
func minus(x, y op.Op) vec { return binary(a.VPSUBQ, x, y) }

func shiftLeft(x vec, bits int) vec {
	v := a.YMM()
	a.VPSLLQ(op.Imm(uint64(bits)), x, v)
	return v
}

func shiftRight(x vec, bits int) vec {
	v := a.YMM()
	a.VPSRLQ(op.Imm(uint64(bits)), x, v)
	return v
}

// abs clears the signs.
func abs(x vec) vec { return and(x, bitsOf(1<<63-1)) }

// high keeps the leading 26 bits of each number.
func high(x vec) vec { return and(x, bitsOf(^uint64(1<<27-1))) }

// The predicates of compare. The negated ones hold where an operand is NaN.
const (
	equal     = 0x00
	less      = 0x11
	notAtMost = 0x16
	atLeast   = 0x1d
	atMost    = 0x12
)

// compare returns all ones in the lanes where the predicate holds.
func compare(predicate int, x vec, y op.Op) vec {
	v := a.YMM()
	a.VCMPPD(op.Imm(uint64(predicate)), y, x, v)
	return v
}

// choose returns yes in the lanes where mask is set, no in the others.
func choose(mask vec, yes, no op.Op) vec {
	v := a.YMM()
	a.VBLENDVPD(mask, yes, load(no), v)
	return v
}

// twoSum returns the rounded sum of x and y and its exact error.
func twoSum(x, y op.Op) (sum, err vec) {
	sum = add(x, y)
	v := sub(sum, x)
	return sum, add(sub(x, sub(sum, v)), sub(y, v))
}

// table is a table of pairs of numbers.
type table struct{ at reg.GPVirtual }

// pairs returns the first and second parts of four entries; index holds their
// places.
func (t table) pairs(index vec) (first, second vec) {
	offsets := shiftLeft(index, 4)
	upper := a.XMM()
	a.VEXTRACTI128(op.Imm(1), offsets, upper)
	r := [4]reg.GPVirtual{a.GP64(), a.GP64(), a.GP64(), a.GP64()}
	a.VMOVQ(offsets.AsX(), r[0])
	a.VPEXTRQ(op.Imm(1), offsets.AsX(), r[1])
	a.VMOVQ(upper, r[2])
	a.VPEXTRQ(op.Imm(1), upper, r[3])
	even, odd := a.YMM(), a.YMM()
	a.VBROADCASTF128(atIndex(t.at, r[0], 1, 0), even)
	a.VINSERTF128(op.Imm(1), atIndex(t.at, r[2], 1, 0), even, even)
	a.VBROADCASTF128(atIndex(t.at, r[1], 1, 0), odd)
	a.VINSERTF128(op.Imm(1), atIndex(t.at, r[3], 1, 0), odd, odd)
	first, second = a.YMM(), a.YMM()
	a.VUNPCKLPD(odd, even, first)
	a.VUNPCKHPD(odd, even, second)
	return first, second
}
