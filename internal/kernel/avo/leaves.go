package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// leafCount is the number of rows that one call takes.
const leafCount = 8

// leaves writes the functions on eight rows that are not adjacent in memory.
func leaves() {
	dotLeaves()
	foldLeaves("foldLeaves64", false)
	foldLeaves("foldCentredLeaves64", true)
}

// sliceHeader is the size in bytes of a slice value: pointer, length and capacity.
const sliceHeader = 24

// leafRows returns registers with the data pointers of the eight slices.
func leafRows() (p [leafCount]reg.GPVirtual) {
	rows := argument("rows")
	for i := range p {
		p[i] = a.GP64()
		a.MOVQ(at(rows, sliceHeader*i), p[i])
	}
	return p
}

// dotLeaves writes the inner products of eight rows with w. The rows are lanes of two
// registers, four in each.
func dotLeaves() {
	function("dotLeaves64", "sets out[i] to the inner product of rows[i] and w, for d > 0 features.",
		"func(rows *[]float64, d int, w *float64, out *[8]float64)")
	p, d, w, j := leafRows(), argument("d"), argument("w"), a.GP64()
	a.XORQ(j, j)
	acc := ymms(2)
	zero(acc...)
	pair := func(r, q, bytes int) vec {
		v := a.YMM()
		a.VBROADCASTF128(atIndex(p[r], j, 8, bytes), v)
		a.VINSERTF128(op.U8(1), atIndex(p[q], j, 8, bytes), v, v)
		return v
	}
	while(d, 2, func() {
		columns := a.YMM()
		a.VBROADCASTF128(atIndex(w, j, 8, 0), columns)
		for half, sum := range acc {
			r := 4 * half
			even, odd := pair(r, r+2, 0), pair(r+1, r+3, 0)
			a.VMULPD(columns, even, even)
			a.VMULPD(columns, odd, odd)
			first := a.YMM()
			a.VUNPCKLPD(odd, even, first)
			a.VUNPCKHPD(odd, even, odd)
			a.VADDPD(first, sum, sum)
			a.VADDPD(odd, sum, sum)
		}
		a.ADDQ(op.Imm(2), j)
	})
	ifNotZero(d, func() {
		column := a.YMM()
		a.VBROADCASTSD(atIndex(w, j, 8, 0), column)
		for half, sum := range acc {
			r := 4 * half
			v, high := a.YMM(), a.XMM()
			a.VBROADCASTSD(atIndex(p[r], j, 8, 0), v)
			a.VMOVHPD(atIndex(p[r+1], j, 8, 0), v.AsX(), v.AsX())
			a.VMOVSD(atIndex(p[r+2], j, 8, 0), high)
			a.VMOVHPD(atIndex(p[r+3], j, 8, 0), high, high)
			a.VINSERTF128(op.U8(1), high, v, v)
			a.VMULPD(column, v, v)
			a.VADDPD(v, sum, sum)
		}
	})
	out := argument("out")
	for half, sum := range acc {
		a.VMOVUPD(sum, at(out, 32*half))
	}
	done()
}

// foldLeaves writes the sums over eight rows. Columns are lanes.
func foldLeaves(name string, centred bool) {
	doc, extra := "sets out[j] to the sum up the tree of the parts of eight rows, from bytes from on, without a mean.", ""
	if centred {
		doc, extra = "is foldLeaves64 with a mean.", "mean, "
	}
	function(name, doc, "func(rows *[]float64, from, d int, coef *[8]float64, "+extra+"scale, out *float64)")
	p, from := leafRows(), argument("from")
	for _, row := range p {
		a.ADDQ(from, row)
	}
	coef := argument("coef")
	scalars := ymms(leafCount)
	for i, c := range scalars {
		a.VBROADCASTSD(at(coef, 8*i), c)
	}
	d, scale, out, j := argument("d"), argument("scale"), argument("out"), a.GP64()
	mean := scale
	if centred {
		mean = argument("mean")
	}
	a.XORQ(j, j)
	f := float64s()
	// columns writes the sums for one register of columns, with the given instructions.
	// register returns a new register, and the lanes of a register are the columns.
	columns := func(register func() reg.VecVirtual, width func(vec) reg.Register, move, mul, sub, add func(ops ...op.Op)) {
		middle, scaleLanes := register(), register()
		if centred {
			move(atIndex(mean, j, 8, 0), middle)
		}
		move(atIndex(scale, j, 8, 0), scaleLanes)
		part := func(i int) vec {
			v := register()
			mul(atIndex(p[i], j, 8, 0), width(scalars[i]), v)
			if centred {
				shift := register()
				mul(middle, width(scalars[i]), shift)
				sub(shift, v, v)
			}
			mul(scaleLanes, v, v)
			return v
		}
		// The sums are formed depth first, so that few partial sums occupy registers at a time.
		var node func(lo, n int) vec
		node = func(lo, n int) vec {
			if n == 1 {
				return part(lo)
			}
			left, right := node(lo, n/2), node(lo+n/2, n/2)
			add(right, left, left)
			return left
		}
		move(node(0, leafCount), atIndex(out, j, 8, 0))
	}
	while(d, f.lanes, func() {
		columns(a.YMM, func(v vec) reg.Register { return v }, f.move, f.mul, f.sub, f.add)
		a.ADDQ(op.Imm(uint64(f.lanes)), j)
	})
	while(d, 1, func() {
		columns(a.XMM, func(v vec) reg.Register { return v.AsX() }, f.move1, f.mul1, f.sub1, f.add1)
		a.ADDQ(op.Imm(1), j)
	})
	done()
}
