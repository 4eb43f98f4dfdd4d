package main

import (
	"fmt"
	"math"
	"strings"

	op "github.com/mmcloughlin/avo/operand"
)

// avxElementaries writes the elementary functions for four arguments at a time. Each lane goes
// through the operations of the scalar form in the same order. A group is left to the scalar
// form if one of its arguments takes another branch of the scalar form.
func avxElementaries() {
	writeElementary("")
}

// wideElementaries writes the elementary functions for eight arguments at a time.
func wideElementaries() {
	vectorLanes = 8
	defer func() { vectorLanes = 4 }()
	writeElementary("wide")
}

// withPrefix returns name with a prefix, in camel case.
func withPrefix(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + strings.ToUpper(name[:1]) + name[1:]
}

func writeElementary(prefix string) {
	constants = map[uint64]op.Mem{}
	elementary := func(name, what string, bad func(x vec) mask, body func(f functions, x vec) vec) {
		groupLoop(withPrefix(prefix, name), what, bad, body)
	}
	within := func(lo, hi float64) func(x vec) mask {
		return func(x vec) mask {
			size := abs(x)
			bad := compare(notAtMost, size, num(hi))
			if lo > 0 {
				bad = either(bad, compare(less, size, num(lo)))
			}
			return bad
		}
	}
	elementary("expGroups", "e^x", within(0, 708), func(f functions, x vec) vec {
		r := f.reduceExp(x)
		h, _ := r.pair()
		return mul(h, r.z)
	})
	elementary("logGroups", "log x", func(x vec) mask {
		return either(compare(notAtMost, x, num(math.MaxFloat64)), compare(less, x, num(0x1p-1022)))
	}, func(f functions, x vec) vec {
		m, k := split(x)
		h, _ := f.logPair(m, zeros(), toFloats(k))
		return h
	})
	elementary("sigmoidGroups", "1/(1+e^-x)", within(0, 40), sigmoid)
	elementary("tanhGroups", "tanh x", within(0x1p-28, 22), tanh)
	elementary("softplusGroups", "log(1+e^x)", within(0, 45), softplus)
	powGroups(withPrefix(prefix, "powGroups"))
}

// functions has the tables that the elementary functions read.
type functions struct{ exp, log table }

// groupLoop writes the loop over groups of arguments. bad returns the lanes whose arguments
// must be left to the scalar form.
func groupLoop(name, expression string, bad func(x vec) mask, body func(f functions, x vec) vec) {
	function(name, fmt.Sprintf("sets dst[i] to %s of src[i] in groups of %d until a group has an argument that is\n", expression, vectorLanes)+
		"for the scalar form, or less than a group is left. It returns the number left.",
		"func(dst, src *float64, n int, exp *[64][2]float64, log *[93][2]float64) int")
	dst, src, n := argument("dst"), argument("src"), argument("n")
	f := functions{exp: table{argument("exp")}, log: table{argument("log")}}
	bytes := op.Imm(uint64(8 * vectorLanes))
	a.Label("loop")
	a.CMPQ(n, op.Imm(uint64(vectorLanes)))
	a.JLT(op.LabelRef("end"))
	x := newVec()
	a.VMOVUPD(at(src, 0), x)
	ifAny(bad(x), "end")
	a.VMOVUPD(body(f, x), at(dst, 0))
	a.ADDQ(bytes, src)
	a.ADDQ(bytes, dst)
	a.SUBQ(op.Imm(uint64(vectorLanes)), n)
	a.JMP(op.LabelRef("loop"))
	a.Label("end")
	a.VZEROUPPER()
	a.Store(n, a.ReturnIndex(0))
	a.RET()
}

const (
	ln2by64Hi  = 0x1.62e42fefap-7
	ln2by64Lo  = 0x1.cf79abc9e3b398p-46
	rLn2by64   = 0x1.71547652b82fep+6
	roundShift = 0x1.8p52
	ln2Hi      = 0x1.62e42fefa38p-1
	ln2Lo      = 0x1.ef35793c7673p-45
)

// reduced is the result of reduceExp: e^x is (s + sl)·(1 + r + t)·z.
type reduced struct{ s, sl, r, t, z vec }

// reduceExp requires |x| ≤ 708, so that z is a normal power of two. After the addition of
// roundShift, the low bits of the sum hold the quotient as an integer. Its last six bits are
// the index in the table, and the other bits are the exponent.
func (f functions) reduceExp(x vec) reduced { return f.reduceExpSum(x, zeros()) }

// reduceExpSum is reduceExp for the argument x + xl.
func (f functions) reduceExpSum(x, xl vec) reduced {
	shifted := add(mul(x, num(rLn2by64)), num(roundShift))
	n := sub(shifted, num(roundShift))
	rh := sub(x, mul(n, num(ln2by64Hi)))
	rl := sub(xl, mul(n, num(ln2by64Lo)))
	r := add(rh, rl)
	t := add(add(sub(rh, r), rl), expTail(r))
	s, sl := f.exp.pairs(and(shifted, bitsOf(63)))
	z := addInts(shiftLeft(and(shifted, bitsOf(^uint64(63))), 46), bitsOf(1023<<52))
	return reduced{s, sl, r, t, z}
}

func expTail(r vec) vec {
	w := mul(r, r)
	p := add(add(num(1.0/24), mul(r, num(1.0/120))), mul(w, num(1.0/720)))
	p = add(add(num(0.5), mul(r, num(1.0/6))), mul(w, p))
	return mul(w, p)
}

// pair returns (s + sl)·(1 + r + t) as an unevaluated sum h + l.
func (r reduced) pair() (h, l vec) {
	p := add(r.sl, mul(r.s, add(r.r, r.t)))
	h = add(r.s, p)
	return h, add(sub(r.s, h), p)
}

func (f functions) expm1Pair(x vec) (h, l vec) {
	r := f.reduceExp(x)
	s, sl := mul(r.s, r.z), mul(r.sl, r.z)
	top, low := twoSum(s, num(-1))
	h = add(top, r.r)
	p := add(r.r, r.t)
	l = add(add(sub(top, h), r.r), add(add(r.t, mul(top, p)), add(add(sl, mul(sl, p)), low)))
	sum := add(h, l)
	return sum, add(sub(h, sum), l)
}

// split returns m and k with x = m·2^k and √½ < m ≤ √2 approximately, for positive
// normal x.
func split(x vec) (m, k vec) {
	const sqrt2 = 0x6a09e667f3bcd // the fraction bits of √2
	fraction := and(x, bitsOf(1<<52-1))
	beyond := greaterInts(fraction, bitsOf(sqrt2)) // -1 in lanes where fraction exceeds the fraction of √2, else 0
	m = addInts(or(fraction, bitsOf(1023<<52)), shiftLeft(beyond, 52))
	k = subInts(subInts(shiftRight(x, 52), bitsOf(1023)), beyond)
	return m, k
}

// toFloats converts small integers to float64.
func toFloats(k vec) vec {
	return sub(addInts(k, num(roundShift)), num(roundShift))
}

// logPair returns the logarithm of (m+ml)·2^kf as an unevaluated sum; kf holds integers as
// float64.
func (f functions) logPair(m, ml, kf vec) (h, l vec) {
	rounded := truncate(add(mul(m, num(128)), num(0.5)))
	first, second := f.log.pairs(subInts(add(rounded, num(roundShift)), addInts(load(num(roundShift)), bitsOf(90))))
	c := mul(rounded, num(1.0/128))
	n := sub(m, c)
	top := add(n, ml)
	topLo := add(sub(n, top), ml)

	den := add(m, c)
	dh := high(den)
	dl := add(sub(m, sub(dh, c)), ml)
	inv := div(num(1), den)
	z := mul(top, inv)
	zh := high(z)
	zl := mul(add(sub(sub(top, mul(zh, dh)), mul(zh, dl)), topLo), inv)

	w := mul(z, z)
	p := add(num(1.0/7), mul(w, num(1.0/9)))
	p = add(num(1.0/5), mul(w, p))
	p = add(num(1.0/3), mul(w, p))
	tail := mul(mul(num(2), z), mul(w, p))

	big := add(mul(kf, num(ln2Hi)), first)
	small := add(mul(kf, num(ln2Lo)), second)
	zh, zl = add(zh, zh), add(zl, zl)
	h = add(big, zh)
	l = add(add(sub(big, h), zh), add(zl, add(tail, small)))
	sum := add(h, l)
	return sum, add(sub(h, sum), l)
}

// logPairSum returns the logarithm of s + c as an unevaluated sum.
func (f functions) logPairSum(s, c vec) (h, l vec) {
	m, k := split(s)
	power := shiftLeft(subInts(load(bitsOf(1023)), k), 52)
	return f.logPair(m, mul(c, power), toFloats(k))
}

// scaledPair returns e^x as an unevaluated sum h + l, both multiplied by z, and the power of
// two z.
func (f functions) scaledPair(x vec) (h, l, z vec) {
	r := f.reduceExp(x)
	h, l = r.pair()
	return mul(h, r.z), mul(l, r.z), r.z
}

const signs = 1 << 63

func sigmoid(f functions, x vec) vec {
	h, l, _ := f.scaledPair(or(x, bitsOf(signs)))
	den := add(num(1), h)
	denLo := add(sub(h, sub(den, num(1))), l)
	positive := compare(atLeast, x, zeros())
	q := div(choose(positive, num(1), h), den)
	yes := sub(q, mul(mul(q, denLo), q))
	no := add(q, mul(sub(l, mul(q, denLo)), sub(num(1), q)))
	return choose(positive, yes, no)
}

func tanh(f functions, x vec) vec {
	size := abs(x)
	h, l := f.expm1Pair(mul(num(2), size))
	large := compare(atLeast, size, num(1))
	den, denLo := twoSum(num(2), h)
	q := div(choose(large, num(2), h), den)
	yes := sub(num(1), q)
	no := add(q, mul(sub(l, mul(q, add(denLo, l))), mul(num(0.5), sub(num(1), q))))
	return or(choose(large, yes, no), and(x, bitsOf(signs)))
}

func softplus(f functions, x vec) vec {
	h, l, z := f.scaledPair(or(x, bitsOf(signs)))
	tiny := compare(less, z, num(0x1p-30))
	series := add(h, sub(l, mul(mul(h, h), sub(num(0.5), mul(h, num(1.0/3))))))
	one := add(num(1), h)
	lh, ll := f.logPairSum(one, add(sub(h, sub(one, num(1))), l))
	none := zeros()
	lh, ll = choose(tiny, series, lh), choose(tiny, none, ll)
	sum, err := twoSum(abs(x), lh)
	return choose(compare(atMost, x, none), lh, add(sum, add(err, ll)))
}

// twoProduct returns the rounded product of x and y and its error.
func twoProduct(x, y vec) (prod, err vec) {
	prod = mul(x, y)
	xh, yh := high(x), high(y)
	xl, yl := sub(x, xh), sub(y, yh)
	err = add(add(sub(mul(xh, yh), prod), mul(xh, yl)), mul(xl, yh))
	return prod, add(err, mul(xl, yl))
}

// powGroups writes the loop over groups for pow, which has two arguments. It processes a group
// only if each x is positive and normal and each result is a normal number. It also stops at a
// group in which a product of a logarithm and an exponent is NaN.
func powGroups(name string) {
	function(name, fmt.Sprintf("sets dst[i] to x[i] to the power of y[i] in groups of %d until a group has a pair that is\n", vectorLanes)+
		"for the scalar form, or less than a group is left. It returns the number left.",
		"func(dst, x, y *float64, n int, exp *[64][2]float64, log *[93][2]float64) int")
	dst, from, power, n := argument("dst"), argument("x"), argument("y"), argument("n")
	f := functions{exp: table{argument("exp")}, log: table{argument("log")}}
	a.Label("loop")
	a.CMPQ(n, op.Imm(uint64(vectorLanes)))
	a.JLT(op.LabelRef("end"))
	x := newVec()
	a.VMOVUPD(at(from, 0), x)
	ifAny(either(compare(notAtMost, x, num(math.MaxFloat64)), compare(less, x, num(0x1p-1022))), "end")
	m, k := split(x)
	h, l := f.logPair(m, zeros(), toFloats(k))
	y := newVec()
	a.VMOVUPD(at(power, 0), y)
	ifAny(compare(notAtMost, abs(mul(y, h)), num(707)), "end")
	p, e := twoProduct(y, h)
	e = add(e, mul(y, l))
	v := add(p, e)
	r := f.reduceExpSum(v, add(sub(p, v), e))
	result, _ := r.pair()
	a.VMOVUPD(mul(result, r.z), at(dst, 0))
	for _, pointer := range []op.Op{dst, from, power} {
		a.ADDQ(op.Imm(uint64(8*vectorLanes)), pointer)
	}
	a.SUBQ(op.Imm(uint64(vectorLanes)), n)
	a.JMP(op.LabelRef("loop"))
	a.Label("end")
	a.VZEROUPPER()
	a.Store(n, a.ReturnIndex(0))
	a.RET()
}
