package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The functions of this file write the operations of which the elementary functions consist.
// Most return a new register of float64 or of 64-bit integers, with four lanes for AVX2 and
// eight for AVX-512. Operands are registers or constants in memory.

type vec = reg.VecVirtual

// mask is the register that says in which lanes a condition holds: a vector whose lanes have
// all bits 1 or all bits 0 or, with AVX-512, a mask register with one bit per lane.
type mask = reg.Register

// vectorLanes is the number of lanes per register in the file that is being generated.
var vectorLanes = 4

// newVec returns a new register of vectorLanes lanes.
func newVec() vec {
	if vectorLanes == 8 {
		return a.ZMM()
	}
	return a.YMM()
}

// constants maps the bits of each constant of the file that is being generated to its memory.
var constants map[uint64]op.Mem

const rodata = attr.RODATA | attr.NOPTR

// bitsOf returns the memory of a constant that has the given 64 bits in each lane.
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

// num returns the memory of a constant that is x in each lane.
func num(x float64) op.Mem { return bitsOf(math.Float64bits(x)) }

// load returns a register with the value of operand x.
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

// commuting is binary for commutative operations: x or y may be in memory.
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

// addInts and subInts add and subtract 64-bit integers.
func addInts(x, y op.Op) vec { return commuting(a.VPADDQ, x, y) }
func subInts(x, y op.Op) vec { return binary(a.VPSUBQ, x, y) }

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

// abs returns x with its sign bits cleared.
func abs(x vec) vec { return and(x, bitsOf(1<<63-1)) }

// high returns x with each number truncated to its leading 26 bits.
func high(x vec) vec { return and(x, bitsOf(^uint64(1<<27-1))) }

// The predicates of compare. Predicates whose names begin with "not" also hold if an operand is
// NaN.
const (
	equal     = 0x00
	unordered = 0x03
	less      = 0x11
	notAtMost = 0x16
	atLeast   = 0x1d
	atMost    = 0x12
)

// newMask returns a new register for a mask.
func newMask() mask {
	if vectorLanes == 8 {
		return a.K()
	}
	return a.YMM()
}

// compare returns a mask of the lanes in which the predicate holds.
func compare(predicate int, x vec, y op.Op) mask {
	m := newMask()
	a.VCMPPD(op.Imm(uint64(predicate)), y, x, m)
	return m
}

// either returns the lanes that are in x or y; both returns the lanes that are in x and y.
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

// choose returns the values of yes in the lanes of m, and the values of no in the other lanes.
func choose(m mask, yes, no op.Op) vec {
	v := newVec()
	if vectorLanes == 8 {
		a.VBLENDMPD(yes, load(no), m, v)
	} else {
		a.VBLENDVPD(m, yes, load(no), v)
	}
	return v
}

// ifAny writes a jump to label that is taken if m has any lane.
func ifAny(m mask, label string) {
	if vectorLanes == 8 {
		a.KORTESTW(m, m)
	} else {
		a.VTESTPD(m, m)
	}
	a.JNZ(op.LabelRef(label))
}

// greaterInts returns -1 in the lanes where the integer x is greater than y, and 0 in the other
// lanes.
func greaterInts(x vec, y op.Op) vec {
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

// truncate returns x converted to 64-bit integers, without the fractions.
func truncate(x vec) vec {
	v := newVec()
	if vectorLanes == 8 {
		a.VRNDSCALEPD(op.Imm(3), x, v)
	} else {
		a.VROUNDPD(op.Imm(3), x, v)
	}
	return v
}

// zeros returns zeros.
func zeros() vec {
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

// table is a table of pairs of float64 in memory.
type table struct{ at reg.GPVirtual }

// pairs returns the first and the second parts of the table entries with the indices in index.
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

// entry loads the entry at offset into the given 128-bit part of v. Part 0 overwrites all of v.
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
