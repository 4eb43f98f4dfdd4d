package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// a is the context of the file that is being generated; all functions of this program append
// instructions to it.
var a *build.Context

func use(context *build.Context) { a = context }

// float describes one of the two element types, with the instructions for it.
type float struct {
	suffix string // suffix of function names
	size   int    // size of an element in bytes
	lanes  int    // elements of a YMM register
	elem   string // Go type

	move, add, sub, mul     func(ops ...op.Op) // instructions on packed elements
	move1, add1, mul1, sub1 func(ops ...op.Op) // instructions on one element
	broadcast               func(ops ...op.Op)
}

func float64s() float {
	return float{
		suffix: "64", size: 8, lanes: 4, elem: "float64",
		move: a.VMOVUPD, add: a.VADDPD, sub: a.VSUBPD, mul: a.VMULPD,
		move1: a.VMOVSD, add1: a.VADDSD, mul1: a.VMULSD, sub1: a.VSUBSD,
		broadcast: a.VBROADCASTSD,
	}
}

func float32s() float {
	return float{
		suffix: "32", size: 4, lanes: 8, elem: "float32",
		move: a.VMOVUPS, add: a.VADDPS, sub: a.VSUBPS, mul: a.VMULPS,
		move1: a.VMOVSS, add1: a.VADDSS, mul1: a.VMULSS, sub1: a.VSUBSS,
		broadcast: a.VBROADCASTSS,
	}
}

// function begins a generated function, which does not let its arguments escape.
func function(name, doc, signature string) {
	labels = 0
	a.Function(name)
	a.Attributes(attr.NOSPLIT)
	a.SignatureExpr(signature)
	a.Pragma("noescape")
	a.Doc(strings.Split(name+" "+doc, "\n")...)
}

// done ends the generated function.
func done() {
	a.VZEROUPPER()
	a.RET()
}

// argument returns a register with the value of an argument of eight bytes.
func argument(name string) reg.GPVirtual { return a.Load(a.Param(name), a.GP64()).(reg.GPVirtual) }

// at returns the memory operand at p plus bytes.
func at(p reg.Register, bytes int) op.Mem { return op.Mem{Base: p, Disp: bytes} }

// atIndex returns the memory operand at p + index*scale + bytes.
func atIndex(p, index reg.Register, scale uint8, bytes int) op.Mem {
	return op.Mem{Base: p, Index: index, Scale: scale, Disp: bytes}
}

// labels is the number of labels so far in the current generated function.
var labels int

// while writes a loop that runs body as long as n is at least step, and subtracts step from n
// after each iteration.
func while(n reg.GPVirtual, step int, body func()) {
	labels++
	loop, end := fmt.Sprintf("loop%d", labels), fmt.Sprintf("end%d", labels)
	a.CMPQ(n, op.Imm(uint64(step)))
	a.JLT(op.LabelRef(end))
	a.Label(loop)
	body()
	a.SUBQ(op.Imm(uint64(step)), n)
	a.CMPQ(n, op.Imm(uint64(step)))
	a.JGE(op.LabelRef(loop))
	a.Label(end)
}

// ifNotZero writes body so that it is skipped if n is zero.
func ifNotZero(n reg.GPVirtual, body func()) {
	labels++
	end := fmt.Sprintf("end%d", labels)
	a.TESTQ(n, n)
	a.JZ(op.LabelRef(end))
	body()
	a.Label(end)
}

// copyOf returns a new register with the value of r.
func copyOf(r reg.GPVirtual) reg.GPVirtual {
	c := a.GP64()
	a.MOVQ(r, c)
	return c
}

// ymms returns n new YMM registers.
func ymms(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = a.YMM()
	}
	return v
}

// zero sets the registers in v to zero.
func zero(v ...reg.VecVirtual) {
	for _, r := range v {
		a.VXORPD(r, r, r)
	}
}
