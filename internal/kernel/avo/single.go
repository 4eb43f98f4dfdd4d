package main

import (
	"fmt"
	"math"
	"strings"

	op "github.com/mmcloughlin/avo/operand"
)

// singleFunctions writes the elementary functions of float32, four arguments at a time: lanes
// are float64 from the load to the store, as in the scalar forms.
func singleFunctions() {
	everySingle("")
}

// wideSingleFunctions writes them for eight arguments at a time.
func wideSingleFunctions() {
	vectorLanes = 8
	defer func() { vectorLanes = 4 }()
	everySingle("wide")
}

// named is a name with a prefix, in camel case.
func named(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + strings.ToUpper(name[:1]) + name[1:]
}

func everySingle(prefix string) {
	constants = map[uint64]op.Mem{}
	singleLoop(named(prefix, "exp32Groups"), "e^x", func(x vec) vec {
		p, z := singleExp(bounded(x, singleExpMost))
		return orNaN(x, add(z, mul(z, p)))
	})
	singleLoop(named(prefix, "log32Groups"), "log x", func(x vec) vec {
		m, k := split(x)
		return logEnds(x, singleLog(m, numbers(k)))
	})
	singleLoop(named(prefix, "log1p32Groups"), "log(1+x)", func(x vec) vec {
		u := add(x, num(1))
		lost := choose(compare(less, x, num(1)), sub(x, sub(u, num(1))), nothing())
		m, k := split(u)
		y := logEnds(u, add(singleLog(m, numbers(k)), lost))
		return choose(compare(equal, x, nothing()), x, y)
	})
	singleLoop(named(prefix, "sigmoid32Groups"), "1/(1+e^-x)", func(x vec) vec {
		p, z := singleExp(flipped(bounded(x, singleExpMost)))
		return orNaN(x, div(num(1), add(add(z, mul(z, p)), num(1))))
	})
	singleLoop(named(prefix, "tanh32Groups"), "tanh x", func(x vec) vec {
		p, z := singleExp(mul(least(abs(x), num(20)), num(2)))
		t := add(mul(z, p), sub(z, num(1)))
		return orNaN(x, or(div(t, add(t, num(2))), and(x, bitsOf(signs))))
	})
	singlePow(named(prefix, "pow32Groups"))
}

// widened loads numbers of float32, storeNarrowed rounds and stores them.
func widened(m op.Mem) vec {
	v := newVec()
	a.VCVTPS2PD(m, v)
	return v
}

func storeNarrowed(v vec, m op.Mem) {
	if vectorLanes == 8 {
		half := a.YMM()
		a.VCVTPD2PS(v, half)
		a.VMOVUPS(half, m)
		return
	}
	half := a.XMM()
	a.VCVTPD2PSY(v, half)
	a.VMOVUPS(half, m)
}

// singleLoop writes the loop over groups.
func singleLoop(name, what string, body func(x vec) vec) {
	function(name, fmt.Sprintf("sets dst[i] to %s of src[i], for n a multiple of %d.", what, vectorLanes), "func(dst, src *float32, n int)")
	dst, src, n := argument("dst"), argument("src"), argument("n")
	while(n, vectorLanes, func() {
		storeNarrowed(body(widened(at(src, 0))), at(dst, 0))
		a.ADDQ(op.Imm(uint64(4*vectorLanes)), src)
		a.ADDQ(op.Imm(uint64(4*vectorLanes)), dst)
	})
	done()
}

const (
	rLn2          = 0x1.71547652b82fep+0
	ln2           = 0x1.62e42fefa39efp-1
	singleExpMost = 200
)

var (
	expTerms   = [8]float64{0x1.fffffffffe064p-2, 0x1.5555555554f96p-3, 0x1.55555565c746ep-5, 0x1.111111170b889p-7, 0x1.6c166be0ac9c4p-10, 0x1.a019c36d4499dp-13, 0x1.a136bb8abfb74p-16, 0x1.72ad42f9bb93fp-19}
	atanhTerms = [6]float64{0x1.55555555553b7p-2, 0x1.9999999b878d7p-3, 0x1.249246299fc8ep-3, 0x1.c71fcdfe2f300p-4, 0x1.7382a9fa2e7aep-4, 0x1.546d249f36cb2p-4}
)

func singleExp(x vec) (p, z vec) {
	shifted := add(mul(x, num(rLn2)), num(roundShift))
	r := sub(x, mul(sub(shifted, num(roundShift)), num(ln2)))
	w := mul(r, r)
	two := func(c []float64) vec { return add(mul(r, num(c[1])), num(c[0])) }
	four := func(c []float64) vec { return add(two(c), mul(w, two(c[2:]))) }
	p = add(r, mul(w, add(four(expTerms[:4]), mul(mul(w, w), four(expTerms[4:])))))
	return p, plus(shiftLeft(shifted, 52), bitsOf(1023<<52))
}

func singleLog(m, k vec) vec {
	f := sub(m, num(1))
	s := div(f, add(f, num(2)))
	z := mul(s, s)
	w := mul(z, z)
	two := func(c []float64) vec { return add(mul(z, num(c[1])), num(c[0])) }
	q := add(two(atanhTerms[:]), mul(w, add(two(atanhTerms[2:]), mul(w, two(atanhTerms[4:])))))
	s2 := add(s, s)
	return add(mul(k, num(ln2)), add(s2, mul(s2, mul(z, q))))
}

// least returns the smaller of x and y.
func least(x vec, y op.Op) vec { return binary(a.VMINPD, x, y) }

// bounded keeps x within ±most.
func bounded(x vec, most float64) vec {
	return binary(a.VMAXPD, least(x, num(most)), num(-most))
}

// flipped changes the signs.
func flipped(x vec) vec { return commuting(a.VXORPD, x, bitsOf(signs)) }

// orNaN returns y, and the NaN of package math in the lanes where x is one.
func orNaN(x, y vec) vec { return choose(compare(unordered, x, x), num(math.NaN()), y) }

// logEnds returns y, the logarithm of x, in the lanes where x is positive and finite.
func logEnds(x, y vec) vec {
	none := nothing()
	y = choose(compare(notAbove, x, none), num(math.NaN()), y)
	y = choose(compare(equal, x, none), num(math.Inf(-1)), y)
	return choose(compare(equal, x, num(math.Inf(1))), x, y)
}

func singlePow(name string) {
	function(name, fmt.Sprintf("sets dst[i] to x[i] to the power of y[i] in groups of %d until a group has a pair that is\n", vectorLanes)+
		"for the scalar form, or less than a group is left. It returns the number left.",
		"func(dst, x, y *float32, n int) int")
	dst, from, power, n := argument("dst"), argument("x"), argument("y"), argument("n")
	a.Label("loop")
	a.CMPQ(n, op.Imm(uint64(vectorLanes)))
	a.JLT(op.LabelRef("end"))
	x, y := widened(at(from, 0)), widened(at(power, 0))
	bad := either(compare(notAtMost, x, num(math.MaxFloat32)), compare(atMost, x, nothing()))
	ifAny(either(bad, compare(notAtMost, abs(y), num(math.MaxFloat32))), "end")
	m, k := split(x)
	p, z := singleExp(bounded(mul(y, singleLog(m, numbers(k))), singleExpMost))
	storeNarrowed(add(z, mul(z, p)), at(dst, 0))
	for _, pointer := range []op.Op{dst, from, power} {
		a.ADDQ(op.Imm(uint64(4*vectorLanes)), pointer)
	}
	a.SUBQ(op.Imm(uint64(vectorLanes)), n)
	a.JMP(op.LabelRef("loop"))
	a.Label("end")
	a.VZEROUPPER()
	a.Store(n, a.ReturnIndex(0))
	a.RET()
}
