package main

import (
	"math"

	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rows writes the products of matrices with vectors.
func rows() {
	constants = map[uint64]op.Mem{}
	for _, f := range []float{float64s(), float32s()} {
		dotRows(f, "dotRows", "sets out[i] to the inner product of row i of x and w, with one NaN, for at least one group of rows.", true)
		dotRows(f, "rowNorms", "sets out[i] to the squared norm of row i of x, with one NaN, for at least one group of rows.", false)
		addScaledRows(f)
	}
}

// A group is as many rows as a register has lanes: four rows of float64, or eight of float32.
// Rows are lanes. Four columns of a group, a quad, are loaded and transposed at a time. A group
// of float64 has one pointer, to row 0; a group of float32 has two, to rows 0 and 4.
type group struct {
	f               float
	p               []reg.GPVirtual // pointers to rows 0 and 4
	stride, stride3 reg.GPVirtual   // distance of rows in bytes, and three times that distance
	acc             reg.VecVirtual
	withSelf        bool // the second factor of the products is the row itself
}

// normaliseNaNs replaces every NaN among the sums by math.NaN().
func (g *group) normaliseNaNs() {
	isNaN := a.YMM()
	if g.f.size == 8 {
		a.VCMPPD(op.Imm(unordered), g.acc, g.acc, isNaN)
		a.VBLENDVPD(isNaN, num(math.NaN()), g.acc, g.acc)
		return
	}
	const nan = 0x7fc00000
	a.VCMPPS(op.Imm(unordered), g.acc, g.acc, isNaN)
	a.VBLENDVPS(isNaN, bitsOf(nan<<32|nan), g.acc, g.acc)
}

// row returns the memory operand of row r of the group at an offset of bytes from the current
// column.
func (g *group) row(r, bytes int) op.Mem {
	p := g.p[r/4]
	switch r % 4 {
	case 0:
		return at(p, bytes)
	case 1:
		return atIndex(p, g.stride, 1, bytes)
	case 2:
		return atIndex(p, g.stride, 2, bytes)
	default:
		return atIndex(p, g.stride3, 1, bytes)
	}
}

// pair returns a register with sixteen bytes of row r in the low half and sixteen bytes of row
// q in the high half.
func (g *group) pair(r, q, bytes int) reg.VecVirtual {
	v := a.YMM()
	a.VBROADCASTF128(g.row(r, bytes), v)
	a.VINSERTF128(op.U8(1), g.row(q, bytes), v, v)
	return v
}

// multiply multiplies v, a pair, by the same columns w of the vector or, if withSelf is set, by
// itself.
func (g *group) multiply(v reg.VecVirtual, w reg.VecVirtual) {
	if g.withSelf {
		g.f.mul(v, v, v)
	} else {
		g.f.mul(w, v, v)
	}
}

// addColumns4 adds the products of four columns to the sums, one column after the other. Each
// register in w holds sixteen bytes of the vector, in both halves.
func (g *group) addColumns4(w []reg.VecVirtual) {
	if g.f.lanes == 8 {
		g.addColumns32(w[0])
		return
	}
	for half, disp := range []int{0, 16} {
		g.addColumns64(w[half], disp)
	}
}

func (g *group) addColumns64(w reg.VecVirtual, disp int) {
	even, odd := g.pair(0, 2, disp), g.pair(1, 3, disp)
	g.multiply(even, w)
	g.multiply(odd, w)
	first := a.YMM()
	a.VUNPCKLPD(odd, even, first)
	a.VUNPCKHPD(odd, even, odd)
	a.VADDPD(first, g.acc, g.acc)
	a.VADDPD(odd, g.acc, g.acc)
}

func (g *group) addColumns32(w reg.VecVirtual) {
	var v [4]reg.VecVirtual
	for r := range v {
		v[r] = g.pair(r, r+4, 0)
		g.multiply(v[r], w)
	}
	lo01, lo23 := a.YMM(), a.YMM()
	a.VUNPCKLPS(v[1], v[0], lo01) // r0c0 r1c0 r0c1 r1c1
	a.VUNPCKLPS(v[3], v[2], lo23)
	a.VUNPCKHPS(v[1], v[0], v[0]) // r0c2 r1c2 r0c3 r1c3
	a.VUNPCKHPS(v[3], v[2], v[2])
	column := a.YMM()
	a.VUNPCKLPD(lo23, lo01, column)
	a.VADDPS(column, g.acc, g.acc)
	a.VUNPCKHPD(lo23, lo01, lo01)
	a.VADDPS(lo01, g.acc, g.acc)
	a.VUNPCKLPD(v[2], v[0], column)
	a.VADDPS(column, g.acc, g.acc)
	a.VUNPCKHPD(v[2], v[0], v[0])
	a.VADDPS(v[0], g.acc, g.acc)
}

// addColumn adds the products of one column to the sums.
func (g *group) addColumn(w reg.VecVirtual) {
	v := a.YMM()
	if g.f.lanes == 8 {
		high := a.XMM()
		a.VBROADCASTSS(g.row(0, 0), v)
		a.VBROADCASTSS(g.row(4, 0), high)
		for r := 1; r < 4; r++ {
			a.VINSERTPS(op.U8(16*r), g.row(r, 0), v.AsX(), v.AsX())
			a.VINSERTPS(op.U8(16*r), g.row(4+r, 0), high, high)
		}
		a.VINSERTF128(op.U8(1), high, v, v)
	} else {
		high := a.XMM()
		a.VBROADCASTSD(g.row(0, 0), v)
		a.VMOVHPD(g.row(1, 0), v.AsX(), v.AsX())
		a.VMOVSD(g.row(2, 0), high)
		a.VMOVHPD(g.row(3, 0), high, high)
		a.VINSERTF128(op.U8(1), high, v, v)
	}
	g.multiply(v, w)
	g.f.add(v, g.acc, g.acc)
}

// dotRows writes the loops over groups of rows. The first loop processes several groups
// together, so that the latency of the additions of one group overlaps with additions of other
// groups. The second loop processes one group at a time. Finally, a group that ends with the
// last row is processed; it may repeat rows of the previous group.
func dotRows(f float, name, doc string, vector bool) {
	signature := "func(x *" + f.elem + ", n, d int, out *" + f.elem + ")"
	if vector {
		signature = "func(x *" + f.elem + ", n, d int, w, out *" + f.elem + ")"
	}
	function(name+f.suffix, doc, signature)
	x, n, out := argument("x"), argument("n"), argument("out")
	s := argument("d")
	a.SHLQ(op.U8(shift(f.size)), s)
	s3 := copyOf(s)
	a.LEAQ(atIndex(s, s, 2, 0), s3)

	pass := func(groups int) {
		list := make([]*group, groups)
		perGroup := f.lanes / 4 // number of pointers
		var pointers []reg.GPVirtual
		for i := range list {
			list[i] = &group{f: f, stride: s, stride3: s3, acc: a.YMM(), withSelf: !vector}
			zero(list[i].acc)
			for range perGroup {
				p := a.GP64()
				if len(pointers) == 0 {
					a.MOVQ(x, p)
				} else {
					a.LEAQ(atIndex(pointers[len(pointers)-1], s, 4, 0), p)
				}
				pointers = append(pointers, p)
				list[i].p = append(list[i].p, p)
			}
		}
		var w reg.GPVirtual
		if vector {
			w = argument("w")
			pointers = append(pointers, w)
		}
		columns := argument("d")
		step := func(count int, body func()) {
			while(columns, count, func() {
				body()
				for _, p := range pointers {
					a.ADDQ(op.Imm(uint64(count*f.size)), p)
				}
			})
		}
		step(4, func() {
			var parts []reg.VecVirtual
			if vector {
				parts = ymms(4 * f.size / 16)
				for i, v := range parts {
					a.VBROADCASTF128(at(w, 16*i), v)
				}
			} else {
				parts = make([]reg.VecVirtual, 2)
			}
			for _, g := range list {
				g.addColumns4(parts)
			}
		})
		step(1, func() {
			var v reg.VecVirtual
			if vector {
				v = a.YMM()
				f.broadcast(at(w, 0), v)
			}
			for _, g := range list {
				g.addColumn(v)
			}
		})
		for i, g := range list {
			g.normaliseNaNs()
			f.move(g.acc, at(out, 32*i))
		}
	}
	forward := func(groups int) {
		a.ADDQ(op.Imm(uint64(32*groups)), out)
		skipped := a.GP64() // number of bytes of the rows that are done
		a.MOVQ(s, skipped)
		a.IMUL3Q(op.Imm(uint64(groups*f.lanes)), skipped, skipped)
		a.ADDQ(skipped, x)
	}
	several := 4
	if f.lanes == 8 {
		several = 3 // there are not enough registers for the pointers of more groups
	}
	while(n, several*f.lanes, func() { pass(several); forward(several) })
	while(n, f.lanes, func() { pass(1); forward(1) })
	ifNotZero(n, func() {
		// Move the pointers back by the number of rows that are missing in the last group.
		back := a.GP64()
		a.MOVQ(op.I32(int32(f.lanes)), back)
		a.SUBQ(n, back)
		bytes := copyOf(back)
		a.SHLQ(op.U8(shift(f.size)), bytes)
		a.SUBQ(bytes, out)
		a.IMULQ(s, back)
		a.SUBQ(back, x)
		pass(1)
	})
	done()
}

// addScaledRows writes the loops that add rows to out: eight rows at a time, then four, then
// one. Columns are lanes.
func addScaledRows(f float) {
	function("addScaledRows"+f.suffix, "adds to out the n rows of x scaled by coef, one after the other.",
		"func(x *"+f.elem+", n, d int, coef, out *"+f.elem+")")
	x, n, coef := argument("x"), argument("n"), argument("coef")
	s := argument("d")
	a.SHLQ(op.U8(shift(f.size)), s)
	s3 := a.GP64()
	a.LEAQ(atIndex(s, s, 2, 0), s3)
	for _, count := range []int{8, 4, 1} {
		while(n, count, func() {
			g := &group{f: f, stride: s, stride3: s3}
			scalars := ymms(count)
			for r, v := range scalars {
				f.broadcast(at(coef, r*f.size), v)
			}
			out, columns := argument("out"), argument("d")
			p := copyOf(x)
			pointers := []reg.GPVirtual{p}
			if count == 8 {
				q := a.GP64()
				a.LEAQ(atIndex(x, s, 4, 0), q)
				pointers = append(pointers, q)
			}
			g.p = pointers
			advance := func(bytes int) {
				for _, p := range append(pointers[:len(pointers):len(pointers)], out) {
					a.ADDQ(op.Imm(uint64(bytes)), p)
				}
			}
			for _, width := range []int{2, 1} {
				while(columns, width*f.lanes, func() {
					acc, v := ymms(width), ymms(width)
					for i := range acc {
						f.move(at(out, 32*i), acc[i])
					}
					for r, scalar := range scalars {
						for i := range acc {
							f.mul(g.row(r, 32*i), scalar, v[i])
							f.add(v[i], acc[i], acc[i])
						}
					}
					for i := range acc {
						f.move(acc[i], at(out, 32*i))
					}
					advance(32 * width)
				})
			}
			while(columns, 1, func() {
				acc, v := a.XMM(), a.XMM()
				f.move1(at(out, 0), acc)
				for r, scalar := range scalars {
					f.mul1(g.row(r, 0), scalar.AsX(), v)
					f.add1(v, acc, acc)
				}
				f.move1(acc, at(out, 0))
				advance(f.size)
			})
			a.ADDQ(op.Imm(uint64(count*f.size)), coef)
			switch count {
			case 8:
				a.LEAQ(atIndex(x, s, 8, 0), x)
			case 4:
				a.LEAQ(atIndex(x, s, 4, 0), x)
			default:
				a.ADDQ(s, x)
			}
		})
	}
	done()
}

// shift returns the binary logarithm of size, the size of an element in bytes.
func shift(size int) uint8 {
	if size == 8 {
		return 3
	}
	return 2
}
