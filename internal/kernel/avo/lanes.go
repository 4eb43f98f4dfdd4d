package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The functions of this file are the vocabulary of the elementary functions:
// each returns a new register of float64, or 64-bit integers: four with AVX2,
// eight with AVX-512. Operands are registers or constants in memory.

type vec = reg.VecVirtual

// mask says which lanes a condition holds in: a register of all ones and zeros,
// or with AVX-512 one of bits.
type mask = reg.Register

// vectorLanes is the number of lanes that are being written for.
var vectorLanes = 4

// newVec returns a register of that width.
func newVec() vec {
	if vectorLanes == 8 {
		return a.ZMM()
	}
	return a.YMM()
}

// constants are the data of the file being written, by the bits of the value.
var constants map[uint64]op.Mem

const rodata = attr.RODATA | attr.NOPTR

// bitsOf is a 64-bit constant for all lanes.
func bitsOf(bits uint64) op.Mem {
	if m, ok := constants[bits]; ok {
		return m
	}
	m := a.StaticGlobal(fmt.Sprintf("c%016x", bits))
	a.DataAttributes(rodata)
	for range vectorLanes {
		a.AppendDatum(op.U64(bits))
	}
	constants[bits] = m
	return m
}

// num is a number for all lanes.
func num(x float64) op.Mem { return bitsOf(math.Float64bits(x)) }

// load returns a register with an operand.
func load(x op.Op) vec {
	if v, ok := x.(vec); ok {
		return v
	}
	v := newVec()
	a.VMOVUPD(x, v)
	return v
}

// binary computes x op y; only y may be in memory.
func binary(instruction func(ops ...op.Op), x, y op.Op) vec {
	v := newVec()
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
	v := newVec()
	a.VPSLLQ(op.Imm(uint64(bits)), x, v)
	return v
}

func shiftRight(x vec, bits int) vec {
	v := newVec()
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
	unordered = 0x03
	less      = 0x11
	notAtMost = 0x16
	atLeast   = 0x1d
	atMost    = 0x12
)

// newMask returns a register for a condition.
func newMask() mask {
	if vectorLanes == 8 {
		return a.K()
	}
	return a.YMM()
}

// compare returns the lanes where the predicate holds.
func compare(predicate int, x vec, y op.Op) mask {
	m := newMask()
	a.VCMPPD(op.Imm(uint64(predicate)), y, x, m)
	return m
}

// either and both combine conditions.
func either(x, y mask) mask {
	m := newMask()
	if vectorLanes == 8 {
		a.KORW(x, y, m)
	} else {
		a.VORPD(x, y, m)
	}
	return m
}

func both(x, y mask) mask {
	m := newMask()
	if vectorLanes == 8 {
		a.KANDW(x, y, m)
	} else {
		a.VANDPD(x, y, m)
	}
	return m
}

// choose returns yes in the lanes where m holds, no in the others.
func choose(m mask, yes, no op.Op) vec {
	v := newVec()
	if vectorLanes == 8 {
		a.VBLENDMPD(yes, load(no), m, v)
	} else {
		a.VBLENDVPD(m, yes, load(no), v)
	}
	return v
}

// ifAny jumps if a condition holds in some lane.
func ifAny(m mask, label string) {
	if vectorLanes == 8 {
		a.KORTESTW(m, m)
	} else {
		a.VTESTPD(m, m)
	}
	a.JNZ(op.LabelRef(label))
}

// above returns -1 in the lanes where the integer x is greater than y, else 0.
func above(x vec, y op.Op) vec {
	v := newVec()
	if vectorLanes == 8 {
		m := a.K()
		a.VPCMPGTQ(y, x, m)
		a.VPMOVM2Q(m, v)
	} else {
		a.VPCMPGTQ(y, x, v)
	}
	return v
}

// truncated drops the fractions.
func truncated(x vec) vec {
	v := newVec()
	if vectorLanes == 8 {
		a.VRNDSCALEPD(op.Imm(3), x, v)
	} else {
		a.VROUNDPD(op.Imm(3), x, v)
	}
	return v
}

// nothing returns zeros.
func nothing() vec {
	v := newVec()
	if vectorLanes == 8 {
		a.VPXORQ(v, v, v)
	} else {
		a.VXORPD(v, v, v)
	}
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

// pairs returns the first and second parts of entries; index holds their places.
// Loads of whole entries are faster than two gathers.
func (t table) pairs(index vec) (first, second vec) {
	offsets := shiftLeft(index, 4)
	even, odd := newVec(), newVec()
	for part := range vectorLanes / 2 {
		two := offsets.AsX()
		if part > 0 {
			two = a.XMM()
			if vectorLanes == 8 {
				a.VEXTRACTI64X2(op.Imm(uint64(part)), offsets, two)
			} else {
				a.VEXTRACTI128(op.Imm(uint64(part)), offsets, two)
			}
		}
		r, q := a.GP64(), a.GP64()
		a.VMOVQ(two, r)
		a.VPEXTRQ(op.Imm(1), two, q)
		t.entry(r, part, even)
		t.entry(q, part, odd)
	}
	first, second = newVec(), newVec()
	a.VUNPCKLPD(odd, even, first)
	a.VUNPCKHPD(odd, even, second)
	return first, second
}

// entry loads the entry at an offset into a part of a register, the first part
// into all of it.
func (t table) entry(offset reg.GPVirtual, part int, v vec) {
	entry := atIndex(t.at, offset, 1, 0)
	switch {
	case part == 0 && vectorLanes == 8:
		a.VBROADCASTF64X2(entry, v)
	case part == 0:
		a.VBROADCASTF128(entry, v)
	case vectorLanes == 8:
		a.VINSERTF64X2(op.Imm(uint64(part)), entry, v, v)
	default:
		a.VINSERTF128(op.Imm(uint64(part)), entry, v, v)
	}
}
