package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tiles writes the products of matrices with matrices. Each call computes a tile of a few rows
// by eight columns, which stays in registers.
func tiles() {
	constants = map[uint64]op.Mem{}
	outerTile()
	scalePanel()
	mulTile()
	for _, f := range []float{float64s(), float32s()} {
		for _, panels := range []int{8, 4, 2, 1} {
			if 8*panels <= 8*f.lanes {
				distancePanels(f, panels)
			}
		}
		ownDistances(f)
		accumulate(f, false)
		accumulate(f, true)
	}
}

// quad returns the memory operand of row r, from 0 to 3, at an offset of bytes. Row 0 is at p,
// and rows are s bytes apart; s3 is three times s.
func quad(p, s, s3 reg.Register, r, bytes int) op.Mem {
	g := group{p: []reg.GPVirtual{p.(reg.GPVirtual)}, stride: s.(reg.GPVirtual), stride3: s3.(reg.GPVirtual)}
	return g.row(r, bytes)
}

// triple returns a register with three times the value of s.
func triple(s reg.GPVirtual) reg.GPVirtual {
	s3 := a.GP64()
	a.LEAQ(atIndex(s, s, 2, 0), s3)
	return s3
}

// outerTile writes the function that adds outer products to a tile of four by eight. Its loop
// runs over the rows of the data.
func outerTile() {
	function("outerTile", "adds to four rows of eight values, for each of n rows, the product of one of four\n"+
		"values at left and eight at x, which are gs and xs bytes apart from row to row.",
		"func(left *float64, gs int, x *float64, xs, n int, out0, out1, out2, out3 *float64)")
	g, gs, x, xs, n := argument("left"), argument("gs"), argument("x"), argument("xs"), argument("n")
	at4 := []reg.GPVirtual{argument("out0"), argument("out1"), argument("out2"), argument("out3")}
	acc := ymms(8)
	for i, v := range acc {
		a.VMOVUPD(at(at4[i/2], i%2*32), v)
	}
	while(n, 1, func() {
		lo, hi := a.YMM(), a.YMM()
		a.VMOVUPD(at(x, 0), lo)
		a.VMOVUPD(at(x, 32), hi)
		for r := range 4 {
			c, t := a.YMM(), a.YMM()
			a.VBROADCASTSD(at(g, 8*r), c)
			a.VMULPD(lo, c, t)
			a.VMULPD(hi, c, c)
			a.VADDPD(t, acc[2*r], acc[2*r])
			a.VADDPD(c, acc[2*r+1], acc[2*r+1])
		}
		a.ADDQ(gs, g)
		a.ADDQ(xs, x)
	})
	for i, v := range acc {
		a.VMOVUPD(v, at(at4[i/2], i%2*32))
	}
	done()
}

// scalePanel writes the function that multiplies the left factors of a Gram matrix by the
// weights of the rows.
func scalePanel() {
	function("scalePanel", "sets four values of left for each of n rows: the product of h and the four values at x,\n"+
		"rows being xs bytes apart.", "func(h, x *float64, xs, n int, left *float64)")
	h, x, xs, n, g := argument("h"), argument("x"), argument("xs"), argument("n"), argument("left")
	while(n, 1, func() {
		v := a.YMM()
		a.VBROADCASTSD(at(h, 0), v)
		a.VMULPD(at(x, 0), v, v)
		a.VMOVUPD(v, at(g, 0))
		a.ADDQ(op.Imm(8), h)
		a.ADDQ(xs, x)
		a.ADDQ(op.Imm(32), g)
	})
	done()
}

// addSquare adds to acc the square of the difference v-w.
func addSquare(f float, v, w op.Op, acc reg.VecVirtual) {
	t := a.YMM()
	f.sub(w, v, t)
	f.mul(t, t, t)
	f.add(t, acc, acc)
}

// mulTile writes the loop over features for the inner products of four rows with one panel.
func mulTile() {
	function("mulTile", "sets four rows of out to the inner products of four rows of x and the eight rows of a panel. Strides are in bytes.",
		"func(x *float64, xs, d int, panel, out *float64, outs int)")
	x, xs, d, panel := argument("x"), argument("xs"), argument("d"), argument("panel")
	xs3 := triple(xs)
	acc := ymms(8)
	zero(acc...)
	while(d, 1, func() {
		lo, hi := a.YMM(), a.YMM()
		a.VMOVUPD(at(panel, 0), lo)
		a.VMOVUPD(at(panel, 32), hi)
		for r := range 4 {
			v := a.YMM()
			a.VBROADCASTSD(quad(x, xs, xs3, r, 0), v)
			for half, w := range []reg.VecVirtual{lo, hi} {
				t := a.YMM()
				a.VMULPD(w, v, t)
				a.VADDPD(t, acc[2*r+half], acc[2*r+half])
			}
		}
		a.ADDQ(op.Imm(8), x)
		a.ADDQ(op.Imm(64), panel)
	})
	out, outs := argument("out"), argument("outs")
	outs3 := triple(outs)
	for i, v := range acc {
		a.VMOVUPD(v, quad(out, outs, outs3, i/2, i%2*32))
	}
	done()
}
