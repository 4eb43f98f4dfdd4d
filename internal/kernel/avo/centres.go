package main

import (
	"fmt"

	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// distancePanels writes the loop over features that computes the distances of one row to the
// centres of several panels. Centres are lanes.
func distancePanels(f float, panels int) {
	function(fmt.Sprintf("distance%dPanels%s", panels, f.suffix), fmt.Sprintf("sets %d values of out to the squared distances of x\n", 8*panels)+
		"and the rows of panels of d features each.", "func(x *"+f.elem+", d int, panel, out *"+f.elem+")")
	x, d, panel := argument("x"), argument("d"), argument("panel")
	s := copyOf(d)
	a.SHLQ(op.Imm(uint64(shift(f.size)+3)), s)
	g := group{f: f, p: []reg.GPVirtual{panel}, stride: s, stride3: triple(s)}
	if panels > 4 {
		next := a.GP64()
		a.LEAQ(atIndex(panel, s, 4, 0), next)
		g.p = append(g.p, next)
	}
	parts := 8 / f.lanes // registers per panel
	acc := ymms(parts * panels)
	zero(acc...)
	while(d, 1, func() {
		v := a.YMM()
		f.broadcast(at(x, 0), v)
		for i := range acc {
			addSquare(f, v, g.row(i/parts, i%parts*32), acc[i])
		}
		a.ADDQ(op.Imm(uint64(f.size)), x)
		for _, p := range g.p {
			a.ADDQ(op.Imm(uint64(8*f.size)), p)
		}
	})
	out := argument("out")
	for i, v := range acc {
		f.move(v, at(out, 32*i))
	}
	done()
}

// ownDistances writes the function for the distance of each row to one centre given for the
// row. The squares of four columns of four rows are transposed, so that rows are lanes.
func ownDistances(f float) {
	function("ownDistances"+f.suffix, "sets out[i] to the squared distance of row i of x and row near[i] of centers, for\n"+
		"at least four rows.", "func(x *"+f.elem+", n, d int, centers *"+f.elem+", near *int32, out *"+f.elem+")")
	vector := a.YMM
	if f.lanes == 8 {
		vector = a.XMM
	}
	x, n, near, out := argument("x"), argument("n"), argument("near"), argument("out")
	pass := func() {
		d, centers, j := argument("d"), argument("centers"), a.GP64()
		var rows, own [4]reg.GPVirtual
		for r := range rows {
			rows[r], own[r] = x, a.GP64()
			if r > 0 {
				rows[r] = a.GP64()
				a.LEAQ(atIndex(rows[r-1], d, uint8(f.size), 0), rows[r])
			}
			a.MOVLQSX(at(near, 4*r), own[r])
			a.IMULQ(d, own[r])
			a.LEAQ(atIndex(centers, own[r], uint8(f.size), 0), own[r])
		}
		acc := vector()
		a.VXORPD(acc, acc, acc)
		a.XORQ(j, j)
		columns := d
		while(columns, 4, func() {
			var t [4]reg.VecVirtual
			for r := range t {
				t[r] = vector()
				f.move(atIndex(rows[r], j, uint8(f.size), 0), t[r])
				f.sub(atIndex(own[r], j, uint8(f.size), 0), t[r], t[r])
				f.mul(t[r], t[r], t[r])
			}
			for _, column := range columnsOf(f, t) {
				f.add(column, acc, acc)
			}
			a.ADDQ(op.Imm(4), j)
		})
		while(columns, 1, func() {
			var t [4]reg.VecVirtual
			for r := range t {
				t[r] = a.XMM()
				f.move1(atIndex(rows[r], j, uint8(f.size), 0), t[r])
				f.sub1(atIndex(own[r], j, uint8(f.size), 0), t[r], t[r])
				f.mul1(t[r], t[r], t[r])
			}
			f.add(joined(f, t), acc, acc)
			a.INCQ(j)
		})
		f.move(acc, at(out, 0))
	}
	while(n, 4, func() {
		pass()
		// d is loaded again for each pass, because the pass decrements the register.
		bytes := argument("d")
		a.SHLQ(op.Imm(uint64(shift(f.size)+2)), bytes)
		a.ADDQ(bytes, x)
		a.ADDQ(op.Imm(16), near)
		a.ADDQ(op.Imm(uint64(4*f.size)), out)
	})
	done()
}

// columnsOf returns the columns of the matrix whose rows are the four registers t; they have
// four elements each.
func columnsOf(f float, t [4]reg.VecVirtual) [4]reg.VecVirtual {
	vector, low, high := a.YMM, a.VUNPCKLPD, a.VUNPCKHPD
	if f.lanes == 8 {
		vector, low, high = a.XMM, a.VUNPCKLPS, a.VUNPCKHPS
	}
	lo01, lo23 := vector(), vector()
	low(t[1], t[0], lo01)
	high(t[1], t[0], t[0])
	low(t[3], t[2], lo23)
	high(t[3], t[2], t[2])
	c := [4]reg.VecVirtual{vector(), vector(), vector(), vector()}
	if f.lanes == 8 {
		a.VUNPCKLPD(lo23, lo01, c[0])
		a.VUNPCKHPD(lo23, lo01, c[1])
		a.VUNPCKLPD(t[2], t[0], c[2])
		a.VUNPCKHPD(t[2], t[0], c[3])
		return c
	}
	a.VPERM2F128(op.Imm(0x20), lo23, lo01, c[0])
	a.VPERM2F128(op.Imm(0x20), t[2], t[0], c[1])
	a.VPERM2F128(op.Imm(0x31), lo23, lo01, c[2])
	a.VPERM2F128(op.Imm(0x31), t[2], t[0], c[3])
	return c
}

// joined returns a register with the first elements of the four registers t.
func joined(f float, t [4]reg.VecVirtual) reg.VecVirtual {
	if f.lanes == 8 {
		a.VUNPCKLPS(t[1], t[0], t[0])
		a.VUNPCKLPS(t[3], t[2], t[2])
		a.VUNPCKLPD(t[2], t[0], t[0])
		return t[0]
	}
	a.VUNPCKLPD(t[1], t[0], t[0])
	a.VUNPCKLPD(t[3], t[2], t[2])
	v := a.YMM()
	a.VPERM2F128(op.Imm(0x20), t[2].AsY(), t[0].AsY(), v)
	return v
}

// accumulate writes the function that adds rows to the sums of their centres. The sums are
// float64 also for rows of float32.
func accumulate(f float, weighted bool) {
	name, weight, doc := "accumulate", "", "adds the n rows of x, and 1 each,"
	if weighted {
		name, weight, doc = "accumulateWeighted", "w *float64, ", "adds the n rows of x and 1, times their weights,"
	}
	function(name+f.suffix, doc+" to d+1 sums of the centre each is\nassigned to; those assigned to a negative one are left out. What is ahead bytes after x is fetched.",
		"func(x *"+f.elem+", n, d int, "+weight+"assign *int32, sums *float64, ahead int)")
	x, n, assign, ahead := argument("x"), argument("n"), argument("assign"), argument("ahead")
	var w reg.GPVirtual
	if weighted {
		w = argument("w")
	}
	while(n, 1, func() {
		to, columns, p := a.GP64(), argument("d"), copyOf(x)
		a.LEAQ(atIndex(x, columns, uint8(f.size), 0), x)
		a.MOVLQSX(at(assign, 0), to)
		a.TESTQ(to, to)
		a.JS(op.LabelRef("next"))
		stride := a.GP64()
		a.LEAQ(op.Mem{Base: columns, Disp: 1}, stride)
		a.IMULQ(stride, to)
		a.SHLQ(op.Imm(3), to)
		a.ADDQ(parameter("sums"), to)
		one := a.YMM()
		if weighted {
			a.VBROADCASTSD(at(w, 0), one)
		} else {
			a.VMOVUPD(num(1), one)
		}
		advance := func(elements int) {
			a.ADDQ(op.Imm(uint64(elements*f.size)), p)
			a.ADDQ(op.Imm(uint64(8*elements)), to)
		}
		for _, width := range []int{4, 1} {
			while(columns, 4*width, func() {
				for line := 0; line < 4*width*f.size; line += 64 {
					a.PREFETCHT0(atIndex(p, ahead, 1, line))
				}
				v := ymms(width)
				for i := range v {
					from := at(p, 4*f.size*i)
					switch {
					case f.lanes == 8:
						a.VCVTPS2PD(from, v[i])
					case !weighted:
						a.VMOVUPD(from, v[i])
					}
					if weighted && f.lanes == 8 {
						a.VMULPD(v[i], one, v[i])
					} else if weighted {
						a.VMULPD(from, one, v[i])
					}
				}
				for i := range v {
					a.VADDPD(at(to, 32*i), v[i], v[i])
				}
				for i := range v {
					a.VMOVUPD(v[i], at(to, 32*i))
				}
				advance(4 * width)
			})
		}
		while(columns, 1, func() {
			v := a.XMM()
			f.move1(at(p, 0), v)
			if f.lanes == 8 {
				a.VCVTSS2SD(v, v, v)
			}
			if weighted {
				a.VMULSD(v, one.AsX(), v)
			}
			a.VADDSD(at(to, 0), v, v)
			a.VMOVSD(v, at(to, 0))
			advance(1)
		})
		v := a.XMM()
		a.VADDSD(at(to, 0), one.AsX(), v)
		a.VMOVSD(v, at(to, 0))
		a.Label("next")
		a.ADDQ(op.Imm(4), assign)
		if weighted {
			a.ADDQ(op.Imm(8), w)
		}
	})
	done()
}
