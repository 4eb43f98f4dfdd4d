package main

import (
	"fmt"
	"math"

	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The functions of this file write the filter of the search for the nearest centre, which
// computes in single precision. Rows are lanes: a register holds sixteen rows, and two
// registers are processed together. So scores are never compared across lanes, and no lanes are
// unused, whatever k is.

// filterRows is the number of rows of one call.
const filterRows = 32

// filterWidths are the numbers of centres that a panel may have. With at most twelve centres,
// the sums for two registers of rows stay in registers.
var filterWidths = []int{4, 6, 8, 10, 12}

// filters writes the functions that prepare rows for the filter, and the functions that compute
// distances after the filter.
func filters() {
	constants = map[uint64]op.Mem{}
	for _, f := range []float{float64s(), float32s()} {
		packRows(f)
		wideOwnDistances(f)
		wideRoots(f)
	}
	fetch()
}

// scores writes the filter for panels of each width.
func scores() {
	singles = map[uint32]op.Mem{}
	for _, width := range filterWidths {
		filterPanels(width)
	}
}

// singles maps the bits of each single-precision constant of the file that is being generated
// to its memory. A constant is stored once, not once for each lane.
var singles map[uint32]op.Mem

// single returns the memory of a single-precision constant, for instructions that broadcast
// their operand.
func single(bits uint32) op.Mem {
	m, ok := singles[bits]
	if !ok {
		m = a.StaticGlobal(fmt.Sprintf("s%08x", bits))
		a.DataAttributes(rodata)
		a.AppendDatum(op.U32(bits))
		singles[bits] = m
	}
	return m
}

// packRows writes the conversion of sixteen rows. Eight columns at a time are subtracted from
// the middle, rounded to single precision and transposed.
func packRows(f float) {
	function("packRows"+f.suffix, "sets y[32*j+r] to middle[j]-x[todo[r]*d+j], in single precision, for sixteen rows\n"+
		"and d columns rounded up to a multiple of eight, of which middle has as many, and norms[r] to\n"+
		"their sum of squares. Columns beyond d read as zeros, and so must middle there.",
		"func(x *"+f.elem+", d int, todo *int32, middle *"+f.elem+", y, norms *float32)")
	x, d, todo := argument("x"), argument("d"), argument("todo")
	rows := a.AllocLocal(16 * 8)
	for r := range 16 {
		p := a.GP64()
		a.MOVLQSX(at(todo, 4*r), p)
		a.IMULQ(d, p)
		a.LEAQ(atIndex(x, p, uint8(f.size), 0), p)
		a.MOVQ(p, rows.Offset(8*r))
	}
	middle, y := argument("middle"), argument("y")
	sum := zmms(2)
	j := a.GP64()
	a.XORQ(j, j)
	block := func(mask reg.Register) {
		var centre reg.VecVirtual
		if f.size == 8 {
			centre = a.ZMM()
		} else {
			centre = a.YMM()
		}
		f.move(at(middle, 0), centre)
		// difference returns the middle minus eight columns of row r, in single precision.
		difference := func(r int) reg.VecVirtual {
			p := a.GP64()
			a.MOVQ(rows.Offset(8*r), p)
			from := atIndex(p, j, uint8(f.size), 0)
			single := a.YMM()
			if f.size == 8 {
				t := a.ZMM()
				if mask != nil {
					a.VMOVUPD_Z(from, mask, t)
					a.VSUBPD(t, centre, t)
				} else {
					a.VSUBPD(from, centre, t)
				}
				a.VCVTPD2PS(t, single)
				return single
			}
			if mask != nil {
				a.VMOVUPS_Z(from, mask, single)
				a.VSUBPS(single, centre, single)
			} else {
				a.VSUBPS(from, centre, single)
			}
			return single
		}
		for c, column := range columnsOf16(difference) {
			a.VMOVUPS(column, at(y, 4*filterRows*c))
			a.VMULPS(column, column, column)
			a.VADDPS(column, sum[c%2], sum[c%2])
		}
		a.ADDQ(op.Imm(8), j)
		a.ADDQ(op.Imm(uint64(8*f.size)), middle)
		a.ADDQ(op.I32(8*4*filterRows), y)
	}
	while(d, 8, func() { block(nil) })
	ifNotZero(d, func() { block(maskOf(d)) })
	a.VADDPS(sum[1], sum[0], sum[0])
	a.VMOVUPS(sum[0], at(argument("norms"), 0))
	done()
}

// maskOf returns a mask of the first n lanes; n is less than sixteen.
func maskOf(n reg.GPVirtual) reg.Register {
	bits, mask := a.GP64(), a.K()
	a.MOVQ(op.I32(-1), bits)
	a.MOVQ(n, reg.RCX)
	a.SHLQ(reg.CL, bits)
	a.NOTQ(bits)
	a.KMOVW(bits.As32(), mask)
	return mask
}

// columnsOf16 transposes sixteen rows of eight single-precision values. row(r) returns a
// register with row r, which columnsOf16 may overwrite.
func columnsOf16(row func(r int) reg.VecVirtual) (columns [8]reg.VecVirtual) {
	// quads holds, for each of four columns and the four after them, rows r to r+3 and
	// r+4 to r+7.
	quads := func(r int) [4]reg.VecVirtual {
		var t [4]reg.VecVirtual
		for i := range t {
			t[i] = a.ZMM()
			low, high := row(r+i), row(r+4+i)
			a.VINSERTF32X8(op.Imm(1), high, low.AsZ(), t[i])
		}
		lo01, lo23 := a.ZMM(), a.ZMM()
		a.VUNPCKLPS(t[1], t[0], lo01)
		a.VUNPCKHPS(t[1], t[0], t[0])
		a.VUNPCKLPS(t[3], t[2], lo23)
		a.VUNPCKHPS(t[3], t[2], t[2])
		c := [4]reg.VecVirtual{a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()}
		a.VUNPCKLPD(lo23, lo01, c[0])
		a.VUNPCKHPD(lo23, lo01, c[1])
		a.VUNPCKLPD(t[2], t[0], c[2])
		a.VUNPCKHPD(t[2], t[0], c[3])
		return c
	}
	low, high := quads(0), quads(8)
	for c := range low {
		for half, selected := range []uint64{0x88, 0xdd} {
			columns[c+4*half] = a.ZMM()
			a.VSHUFF32X4(op.Imm(selected), high[c], low[c], columns[c+4*half])
		}
	}
	return columns
}

// columnsOf8 transposes eight rows of eight values. It overwrites the registers in rows.
func columnsOf8(rows [8]reg.VecVirtual) (columns [8]reg.VecVirtual) {
	for odd, unpack := range []func(ops ...op.Op){a.VUNPCKLPD, a.VUNPCKHPD} {
		var pairs [4]reg.VecVirtual // columns odd, odd+2, odd+4, odd+6 of two rows each
		for i := range pairs {
			pairs[i] = a.ZMM()
			unpack(rows[2*i+1], rows[2*i], pairs[i])
		}
		for next, selected := range []uint64{0x88, 0xdd} {
			low, high := a.ZMM(), a.ZMM()
			a.VSHUFF64X2(op.Imm(selected), pairs[1], pairs[0], low)
			a.VSHUFF64X2(op.Imm(selected), pairs[3], pairs[2], high)
			for half, selected := range []uint64{0x88, 0xdd} {
				columns[odd+2*next+4*half] = a.ZMM()
				a.VSHUFF64X2(op.Imm(selected), high, low, columns[odd+2*next+4*half])
			}
		}
	}
	return columns
}

// wideOwnDistances is the AVX-512 form of ownDistances. It takes as many rows at a time as a
// register has lanes. If fewer than eight columns are left, the missing columns are zeros,
// which add nothing.
func wideOwnDistances(f float) {
	count := 64 / f.size
	function("wideOwnDistances"+f.suffix, fmt.Sprintf("is ownDistances%s for n a multiple of %d.", f.suffix, count),
		"func(x *"+f.elem+", n, d int, centers *"+f.elem+", near *int32, out *"+f.elem+")")
	rows, own := a.AllocLocal(8*count), a.AllocLocal(8*count)
	x, n, near, out := argument("x"), argument("n"), argument("near"), argument("out")
	while(n, count, func() {
		d, centers, j := argument("d"), argument("centers"), a.GP64()
		for r := range count {
			p := a.GP64()
			a.MOVQ(x, rows.Offset(8*r))
			a.LEAQ(atIndex(x, d, uint8(f.size), 0), x)
			a.MOVLQSX(at(near, 4*r), p)
			a.IMULQ(d, p)
			a.LEAQ(atIndex(centers, p, uint8(f.size), 0), p)
			a.MOVQ(p, own.Offset(8*r))
		}
		acc := zmms(1)[0]
		a.XORQ(j, j)
		block := func(mask reg.Register) {
			square := func(r int) reg.VecVirtual {
				p, q, v := a.GP64(), a.GP64(), reg.VecVirtual(nil)
				if v = a.YMM(); f.size == 8 {
					v = a.ZMM()
				}
				a.MOVQ(rows.Offset(8*r), p)
				a.MOVQ(own.Offset(8*r), q)
				from, centre := atIndex(p, j, uint8(f.size), 0), atIndex(q, j, uint8(f.size), 0)
				move, moveSome := f.move, a.VMOVUPS_Z
				if f.size == 8 {
					moveSome = a.VMOVUPD_Z
				}
				if mask == nil {
					move(from, v)
					f.sub(centre, v, v)
				} else {
					c := a.YMM()
					if f.size == 8 {
						c = a.ZMM()
					}
					moveSome(from, mask, v)
					moveSome(centre, mask, c)
					f.sub(c, v, v)
				}
				f.mul(v, v, v)
				return v
			}
			var columns [8]reg.VecVirtual
			if f.size == 8 {
				var t [8]reg.VecVirtual
				for r := range t {
					t[r] = square(r)
				}
				columns = columnsOf8(t)
			} else {
				columns = columnsOf16(square)
			}
			for _, c := range columns {
				f.add(c, acc, acc)
			}
			a.ADDQ(op.Imm(8), j)
		}
		while(d, 8, func() { block(nil) })
		ifNotZero(d, func() { block(maskOf(d)) })
		f.move(acc, at(out, 0))
		a.ADDQ(op.Imm(uint64(4*count)), near)
		a.ADDQ(op.Imm(64), out)
	})
	done()
}

// fetch writes the function that prefetches memory into the cache.
func fetch() {
	function("fetchLines", "has count lines of 64 bytes fetched into the cache, from p on.", "func(p *byte, count int)")
	p, count := argument("p"), argument("count")
	while(count, 1, func() {
		a.PREFETCHT0(at(p, 0))
		a.ADDQ(op.Imm(64), p)
	})
	done()
}

// wideRoots writes the loop of square roots, eight at a time.
func wideRoots(f float) {
	function("wideRoots"+f.suffix, "sets out[i] to the root of x[i] in float64, for n a multiple of eight.",
		"func(x *"+f.elem+", n int, out *float64)")
	x, n, out := argument("x"), argument("n"), argument("out")
	while(n, 8, func() {
		v := a.ZMM()
		if f.size == 4 {
			a.VCVTPS2PD(at(x, 0), v)
			a.VSQRTPD(v, v)
		} else {
			a.VSQRTPD(at(x, 0), v)
		}
		a.VMOVUPD(v, at(out, 0))
		a.ADDQ(op.Imm(uint64(8*f.size)), x)
		a.ADDQ(op.Imm(64), out)
	})
	done()
}

// filterPanels writes the function that computes the scores of 32 rows for panels of width
// centres. The function returns, for each row, the centre with the least score, and whether the
// next score is greater by more than a margin. It is the only function that uses fused
// multiply-add, which takes half the time on processors that multiply and add in the same
// units. This is allowed because scores decide only where their errors cannot change the
// result.
func filterPanels(width int) {
	function(fmt.Sprintf("filter%d", width), fmt.Sprintf("computes scores of 32 rows for count panels of %d centres: that at starts, and\n", width)+
		"for each of the d features the product of y and the panel's value more. near[r] becomes the centre\n"+
		"of the least score of row r. Bit r of the result tells that the next score is greater by more than\n"+
		"scale*(16*norms[r])+base.",
		"func(y *float32, d int, panels, starts *float32, count int, norms *float32, scale, base float32, near *int32) uint32")
	best, second, place := a.AllocLocal(128), a.AllocLocal(128), a.AllocLocal(128)
	infinite, index := a.ZMM(), a.ZMM()
	a.VBROADCASTSS(single(math.Float32bits(float32(math.Inf(1)))), infinite)
	a.VPXORD(index, index, index)
	for h := range 2 {
		a.VMOVUPS(infinite, best.Offset(64*h))
		a.VMOVUPS(infinite, second.Offset(64*h))
		a.VMOVDQU32(index, place.Offset(64*h))
	}
	panels, starts, count := argument("panels"), argument("starts"), argument("count")
	while(count, 1, func() {
		acc := make([]reg.VecVirtual, 2*width)
		for i := range width {
			acc[2*i], acc[2*i+1] = a.ZMM(), a.ZMM()
			a.VBROADCASTSS(at(starts, 4*i), acc[2*i])
			a.VMOVAPS(acc[2*i], acc[2*i+1])
		}
		y, columns := argument("y"), argument("d")
		while(columns, 1, func() {
			var rows [2]reg.VecVirtual
			for h := range rows {
				rows[h] = a.ZMM()
				a.VMOVUPS(at(y, 64*h), rows[h])
			}
			for i := range width {
				value := a.ZMM()
				a.VBROADCASTSS(at(panels, 4*i), value)
				for h := range rows {
					a.VFMADD231PS(rows[h], value, acc[2*i+h])
				}
			}
			a.ADDQ(op.I32(4*filterRows), y)
			a.ADDQ(op.Imm(uint64(4*width)), panels)
		})
		for h := range 2 {
			least, next, at, number := a.ZMM(), a.ZMM(), a.ZMM(), index
			a.VMOVUPS(best.Offset(64*h), least)
			a.VMOVUPS(second.Offset(64*h), next)
			a.VMOVDQU32(place.Offset(64*h), at)
			if h == 0 {
				number = a.ZMM()
				a.VMOVDQA32(index, number)
			}
			for i := range width {
				nearer, score := a.K(), acc[2*i+h]
				a.VCMPPS(op.Imm(less), least, score, nearer)
				a.VMOVDQA32(number, nearer, at)
				greater := a.ZMM()
				a.VMAXPS(least, score, greater)
				a.VMINPS(least, score, least)
				a.VMINPS(next, greater, next)
				a.VPADDD_BCST(single(1), number, number)
			}
			a.VMOVUPS(least, best.Offset(64*h))
			a.VMOVUPS(next, second.Offset(64*h))
			a.VMOVDQU32(at, place.Offset(64*h))
		}
		a.ADDQ(op.Imm(uint64(4*width)), starts)
	})
	norms, near := argument("norms"), argument("near")
	var settled [2]reg.GPVirtual
	scale, base := a.ZMM(), a.ZMM()
	a.VBROADCASTSS(parameter("scale"), scale)
	a.VBROADCASTSS(parameter("base"), base)
	for h := range settled {
		gap, margin, clear := a.ZMM(), a.ZMM(), a.K()
		a.VMOVUPS(second.Offset(64*h), gap)
		a.VSUBPS(best.Offset(64*h), gap, gap)
		a.VMOVUPS(at(norms, 64*h), margin)
		a.VMULPS_BCST(single(math.Float32bits(16)), margin, margin)
		a.VMULPS(margin, scale, margin)
		a.VADDPS(base, margin, margin)
		a.VCMPPS(op.Imm(less), gap, margin, clear)
		settled[h] = a.GP64()
		a.KMOVW(clear, settled[h].As32())
		v := a.ZMM()
		a.VMOVDQU32(place.Offset(64*h), v)
		a.VMOVDQU32(v, at(near, 64*h))
	}
	a.SHLQ(op.Imm(16), settled[1])
	a.ORQ(settled[1], settled[0])
	a.Store(settled[0].As32(), a.ReturnIndex(0))
	done()
}
