package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectors writes the element-wise loops.
func vectors() {
	for _, f := range []float{float64s(), float32s()} {
		axpy(f)
		scale(f)
		combine(f, "addTo", "sets dst[i] = dst[i] + src[i].", f.add, f.add1)
		combine(f, "prodTo", "sets dst[i] = dst[i] * src[i].", f.mul, f.mul1)
	}
	for _, f := range []nanFinder{{float64s(), a.VCMPPD, a.VORPD, a.VMOVMSKPD}, {float32s(), a.VCMPPS, a.VORPS, a.VMOVMSKPS}} {
		nans(f)
		sum(f)
	}
	addScaledTo(float64s())
	signByClass(float64s())
	drain(float64s(), "drain", "sets dst[i] = a[i]*scale[i] and a[i] = 0.", false, false)
	drain(float64s(), "drainPair", "sets dst[i] = a[i]*scale[i] + b[i]*scale[i] and a[i] = b[i] = 0.", true, false)
	drain(float64s(), "addPair", "sets dst[i] = dst[i] + (a[i]*scale[i] + b[i]*scale[i]) and a[i] = b[i] = 0.", true, true)
}

// elementwise writes three loops over n elements: packed for blocks of four registers, packed
// for single registers, and single for the remaining elements. disps are the offsets in bytes
// from the pointers, which advance in each iteration.
func elementwise(f float, n reg.GPVirtual, pointers []reg.GPVirtual, packed func(disps []int), single func()) {
	advance := func(bytes int) {
		for _, p := range pointers {
			a.ADDQ(op.Imm(uint64(bytes)), p)
		}
	}
	while(n, 4*f.lanes, func() {
		packed([]int{0, 32, 64, 96})
		advance(128)
	})
	while(n, f.lanes, func() {
		packed([]int{0})
		advance(32)
	})
	while(n, 1, func() {
		single()
		advance(f.size)
	})
	done()
}

func axpy(f float) {
	function("axpy"+f.suffix, "sets dst[i] = dst[i] + a*x[i].", "func(a "+f.elem+", x, dst *"+f.elem+", n int)")
	scalar := a.YMM()
	f.broadcast(parameter("a"), scalar)
	x, dst, n := argument("x"), argument("dst"), argument("n")
	elementwise(f, n, []reg.GPVirtual{x, dst}, func(disps []int) {
		v := ymms(len(disps))
		for i, disp := range disps {
			f.mul(at(x, disp), scalar, v[i])
		}
		for i, disp := range disps {
			f.add(at(dst, disp), v[i], v[i])
		}
		for i, disp := range disps {
			f.move(v[i], at(dst, disp))
		}
	}, func() {
		v := a.XMM()
		f.move1(at(x, 0), v)
		f.mul1(v, scalar.AsX(), v)
		f.add1(at(dst, 0), v, v)
		f.move1(v, at(dst, 0))
	})
}

func scale(f float) {
	function("scale"+f.suffix, "sets dst[i] = a*dst[i].", "func(a "+f.elem+", dst *"+f.elem+", n int)")
	scalar := a.YMM()
	f.broadcast(parameter("a"), scalar)
	dst, n := argument("dst"), argument("n")
	elementwise(f, n, []reg.GPVirtual{dst}, func(disps []int) {
		v := ymms(len(disps))
		for i, disp := range disps {
			f.mul(at(dst, disp), scalar, v[i])
		}
		for i, disp := range disps {
			f.move(v[i], at(dst, disp))
		}
	}, func() {
		v := a.XMM()
		f.mul1(at(dst, 0), scalar.AsX(), v)
		f.move1(v, at(dst, 0))
	})
}

func combine(f float, name, doc string, packed, single func(ops ...op.Op)) {
	function(name+f.suffix, doc, "func(dst, src *"+f.elem+", n int)")
	dst, src, n := argument("dst"), argument("src"), argument("n")
	elementwise(f, n, []reg.GPVirtual{dst, src}, func(disps []int) {
		v := ymms(len(disps))
		for i, disp := range disps {
			f.move(at(dst, disp), v[i])
		}
		for i, disp := range disps {
			packed(at(src, disp), v[i], v[i])
		}
		for i, disp := range disps {
			f.move(v[i], at(dst, disp))
		}
	}, func() {
		v := a.XMM()
		f.move1(at(dst, 0), v)
		single(at(src, 0), v, v)
		f.move1(v, at(dst, 0))
	})
}

// nanFinder has the instructions that find NaN. They test whether two elements are unordered,
// which holds if either of them is NaN.
type nanFinder struct {
	float
	compare, or func(ops ...op.Op)
	signMask    func(src, dst op.Op)
}

// markNaN sets the lanes of dst in which the element of x or the element of y is NaN.
func (f nanFinder) markNaN(x, y op.Op, dst op.Op) {
	f.compare(op.Imm(unordered), x, y, dst)
}

// returnIfAny writes the end of a function that has combined the results of markNaN in any. The
// function returns 0 if no lane of any is set.
func (f nanFinder) returnIfAny(any reg.VecVirtual) {
	found := a.GP32()
	f.signMask(any, found)
	a.Store(found, a.ReturnIndex(0))
	done()
}

// nans writes the search for NaN. Each comparison tests two registers of elements for NaN.
func nans(f nanFinder) {
	function("nans"+f.suffix, "returns 0 if none of the first n of x is NaN, n being a multiple of 128 bytes.", "func(x *"+f.elem+", n int) uint32")
	x, n := argument("x"), argument("n")
	any := a.YMM()
	zero(any)
	while(n, 4*f.lanes, func() {
		v := ymms(2)
		f.move(at(x, 0), v[0])
		f.move(at(x, 64), v[1])
		f.markNaN(at(x, 32), v[0], v[0])
		f.markNaN(at(x, 96), v[1], v[1])
		f.or(v[0], v[1], v[1])
		f.or(v[1], any, any)
		a.ADDQ(op.Imm(128), x)
	})
	f.returnIfAny(any)
}

// sum writes the loop that adds two slices. It tests the sums for NaN while they are in
// registers.
func sum(f nanFinder) {
	function("sum"+f.suffix, "sets dst[i] = x[i] + y[i], and returns 0 if no sum is NaN, n being a multiple of 128 bytes.",
		"func(dst, x, y *"+f.elem+", n int) uint32")
	dst, x, y, n := argument("dst"), argument("x"), argument("y"), argument("n")
	any := a.YMM()
	zero(any)
	while(n, 4*f.lanes, func() {
		v := ymms(4)
		for i := range v {
			f.move(at(x, 32*i), v[i])
		}
		for i := range v {
			f.add(at(y, 32*i), v[i], v[i])
		}
		for i := range v {
			f.move(v[i], at(dst, 32*i))
		}
		f.markNaN(v[0], v[1], v[0])
		f.markNaN(v[2], v[3], v[2])
		f.or(v[0], any, any)
		f.or(v[2], any, any)
		for _, p := range []reg.GPVirtual{dst, x, y} {
			a.ADDQ(op.Imm(128), p)
		}
	})
	f.returnIfAny(any)
}

func addScaledTo(f float) {
	function("addScaledTo"+f.suffix, "sets dst[i] = x[i] + a*y[i].", "func(a "+f.elem+", x, y, dst *"+f.elem+", n int)")
	scalar := a.YMM()
	f.broadcast(parameter("a"), scalar)
	x, y, dst, n := argument("x"), argument("y"), argument("dst"), argument("n")
	elementwise(f, n, []reg.GPVirtual{x, y, dst}, func(disps []int) {
		v := ymms(len(disps))
		for i, disp := range disps {
			f.mul(at(y, disp), scalar, v[i])
		}
		for i, disp := range disps {
			f.add(at(x, disp), v[i], v[i])
		}
		for i, disp := range disps {
			f.move(v[i], at(dst, disp))
		}
	}, func() {
		v := a.XMM()
		f.move1(at(y, 0), v)
		f.mul1(v, scalar.AsX(), v)
		f.add1(at(x, 0), v, v)
		f.move1(v, at(dst, 0))
	})
}

func signByClass(f float) {
	function("signByClass"+f.suffix, "sets dst[i] = (1 - 2*class[i])*x[i].", "func(one "+f.elem+", class, x, dst *"+f.elem+", n int)")
	one := a.YMM()
	f.broadcast(parameter("one"), one)
	class, x, dst, n := argument("class"), argument("x"), argument("dst"), argument("n")
	elementwise(f, n, []reg.GPVirtual{class, x, dst}, func(disps []int) {
		v := ymms(len(disps))
		for i, disp := range disps {
			f.move(at(class, disp), v[i])
		}
		for i := range disps {
			f.add(v[i], v[i], v[i])
		}
		for i := range disps {
			f.sub(v[i], one, v[i])
		}
		for i, disp := range disps {
			f.mul(at(x, disp), v[i], v[i])
		}
		for i, disp := range disps {
			f.move(v[i], at(dst, disp))
		}
	}, func() {
		v := a.XMM()
		f.move1(at(class, 0), v)
		f.add1(v, v, v)
		f.sub1(v, one.AsX(), v)
		f.mul1(at(x, 0), v, v)
		f.move1(v, at(dst, 0))
	})
}

func drain(f float, name, doc string, twoSources, accumulate bool) {
	sourceNames := "a"
	if twoSources {
		sourceNames = "a, b"
	}
	function(name+f.suffix, doc, "func(scale, "+sourceNames+", dst *"+f.elem+", n int)")
	zeros := ymms(1)[0]
	zero(zeros)
	scale, dst, n := argument("scale"), argument("dst"), argument("n")
	sources := []reg.GPVirtual{argument("a")}
	if twoSources {
		sources = append(sources, argument("b"))
	}
	elementwise(f, n, append([]reg.GPVirtual{scale, dst}, sources...), func(disps []int) {
		for _, disp := range disps {
			v := ymms(1 + len(sources))
			f.move(at(scale, disp), v[0])
			for i, source := range sources {
				f.mul(at(source, disp), v[0], v[1+i])
				f.move(zeros, at(source, disp))
			}
			if twoSources {
				f.add(v[2], v[1], v[1])
			}
			if accumulate {
				f.add(at(dst, disp), v[1], v[1])
			}
			f.move(v[1], at(dst, disp))
		}
	}, func() {
		v := []reg.VecVirtual{a.XMM(), a.XMM(), a.XMM()}
		f.move1(at(scale, 0), v[0])
		for i, source := range sources {
			f.mul1(at(source, 0), v[0], v[1+i])
			f.move1(zeros.AsX(), at(source, 0))
		}
		if twoSources {
			f.add1(v[2], v[1], v[1])
		}
		if accumulate {
			f.add1(at(dst, 0), v[1], v[1])
		}
		f.move1(v[1], at(dst, 0))
	})
}

// parameter returns the memory operand of an argument.
func parameter(name string) op.Mem {
	component, err := a.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return component.Addr
}
