package main

import (
	"math"

	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// wides writes the AVX-512 forms of the loops that are bound by arithmetic. A register holds
// eight lanes, a whole panel, and the instruction that uses an operand in memory also
// broadcasts it. Distances are computed from differences with the opposite sign of the
// differences in the other forms, which does not change the squares.
func wides() {
	constants = map[uint64]op.Mem{}
	wideOuterTile()
	wideScalePanel()
	wideMulTile()
	wideDistancePanels()
	wideNearestRows()
}

// zmms returns n new ZMM registers, set to zero.
func zmms(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = a.ZMM()
		a.VPXORQ(v[i], v[i], v[i])
	}
	return v
}

// wideAddProduct adds to acc the product of panel and a broadcast value.
func wideAddProduct(value op.Mem, panel, acc reg.VecVirtual) {
	t := a.ZMM()
	a.VMULPD_BCST(value, panel, t)
	a.VADDPD(t, acc, acc)
}

// rowsOf8 returns a group for eight rows that begin at p and are s bytes apart.
func rowsOf8(p, s reg.GPVirtual) group {
	next := a.GP64()
	a.LEAQ(atIndex(p, s, 4, 0), next)
	return group{p: []reg.GPVirtual{p, next}, stride: s, stride3: triple(s)}
}

func wideOuterTile() {
	function("wideOuterTile", "adds to eight rows of eight values, for each of n rows, the product of one of eight\n"+
		"values at left and eight at x, which are gs and xs bytes apart from row to row.",
		"func(left *float64, gs int, x *float64, xs, n int, out *[8]*float64)")
	left, gs, x, xs, n, out := argument("left"), argument("gs"), argument("x"), argument("xs"), argument("n"), argument("out")
	acc := make([]reg.VecVirtual, 8)
	p := a.GP64()
	for r := range acc {
		acc[r] = a.ZMM()
		a.MOVQ(at(out, 8*r), p)
		a.VMOVUPD(at(p, 0), acc[r])
	}
	while(n, 1, func() {
		v := a.ZMM()
		a.VMOVUPD(at(x, 0), v)
		for r := range acc {
			wideAddProduct(at(left, 8*r), v, acc[r])
		}
		a.ADDQ(gs, left)
		a.ADDQ(xs, x)
	})
	for r := range acc {
		a.MOVQ(at(out, 8*r), p)
		a.VMOVUPD(acc[r], at(p, 0))
	}
	done()
}

func wideScalePanel() {
	function("wideScalePanel", "sets eight values of left for each of n rows: the product of h and the eight values at x,\n"+
		"rows being xs bytes apart.", "func(h, x *float64, xs, n int, left *float64)")
	h, x, xs, n, left := argument("h"), argument("x"), argument("xs"), argument("n"), argument("left")
	while(n, 1, func() {
		v := a.ZMM()
		a.VMOVUPD(at(x, 0), v)
		a.VMULPD_BCST(at(h, 0), v, v)
		a.VMOVUPD(v, at(left, 0))
		a.ADDQ(op.Imm(8), h)
		a.ADDQ(xs, x)
		a.ADDQ(op.Imm(64), left)
	})
	done()
}

func wideMulTile() {
	function("wideMulTile", "sets eight rows of out to the inner products of eight rows of x and the eight rows of a panel. Strides are in bytes.",
		"func(x *float64, xs, d int, panel, out *float64, outs int)")
	d, panel := argument("d"), argument("panel")
	g := rowsOf8(argument("x"), argument("xs"))
	acc := zmms(8)
	while(d, 1, func() {
		c := a.ZMM()
		a.VMOVUPD(at(panel, 0), c)
		for r := range acc {
			wideAddProduct(g.row(r, 0), c, acc[r])
		}
		for _, p := range g.p {
			a.ADDQ(op.Imm(8), p)
		}
		a.ADDQ(op.Imm(64), panel)
	})
	to := rowsOf8(argument("out"), argument("outs"))
	for r := range acc {
		a.VMOVUPD(acc[r], to.row(r, 0))
	}
	done()
}

func wideDistancePanels() {
	function("wideDistance8Panels", "sets 64 values of out to the squared distances of x\nand the rows of panels of d features each.",
		"func(x *float64, d int, panel, out *float64)")
	x, d, panel, out := argument("x"), argument("d"), argument("panel"), argument("out")
	s := copyOf(d)
	a.SHLQ(op.Imm(6), s)
	g := rowsOf8(panel, s)
	acc := zmms(8)
	while(d, 1, func() {
		v := a.ZMM()
		a.VBROADCASTSD(at(x, 0), v)
		for i := range acc {
			t := a.ZMM()
			a.VSUBPD(g.row(i, 0), v, t)
			a.VMULPD(t, t, t)
			a.VADDPD(t, acc[i], acc[i])
		}
		a.ADDQ(op.Imm(8), x)
		for _, p := range g.p {
			a.ADDQ(op.Imm(64), p)
		}
	})
	for i, v := range acc {
		a.VMOVUPD(v, at(out, 64*i))
	}
	done()
}

// wideNearestRows writes the form of nearestRows for eight rows at a time. The least distances
// and their centres stay in registers.
func wideNearestRows() {
	function("wideNearestRows", "is nearestRows for n a multiple of eight.",
		"func(x *float64, d int, todo *int32, n int, panels *float64, k int, key *uint64, near *int32)")
	a.Attributes(0) // the frame is larger than a NOSPLIT function may have
	ascending := sequence("wideSequence", 8)
	best, place := a.AllocLocal(512), a.AllocLocal(512)
	todo, n := argument("todo"), argument("n")
	while(n, 8, func() {
		d := argument("d")
		var rows [8]reg.GPVirtual
		var least, nearest [8]reg.VecVirtual
		for r := range rows {
			rows[r] = a.GP64()
			a.MOVLQSX(at(todo, 4*r), rows[r])
			a.IMULQ(d, rows[r])
			a.SHLQ(op.Imm(3), rows[r])
			a.ADDQ(parameter("x"), rows[r])
			least[r], nearest[r] = a.ZMM(), a.ZMM()
			a.VBROADCASTSD(num(math.Inf(1)), least[r])
			a.VPBROADCASTQ(bitsOf(^uint64(0)), nearest[r])
		}
		panel, k, j := argument("panels"), argument("k"), a.GP64()
		centre, step := a.ZMM(), a.ZMM()
		a.VMOVDQU64(ascending, centre)
		a.VPBROADCASTQ(bitsOf(8), step)
		a.Label("panels")
		acc := zmms(8)
		a.XORQ(j, j)
		features("features", j, d, func() {
			c := a.ZMM()
			a.VMOVUPD(at(panel, 0), c)
			for r, p := range rows {
				t := a.ZMM()
				a.VSUBPD_BCST(atIndex(p, j, 8, 0), c, t)
				a.VMULPD(t, t, t)
				a.VADDPD(t, acc[r], acc[r])
			}
			a.ADDQ(op.Imm(64), panel)
		})
		for r := range rows {
			nearer := a.K()
			a.VCMPPD(op.Imm(less), least[r], acc[r], nearer)
			a.VMINPD(least[r], acc[r], least[r])
			a.VMOVDQA64(centre, nearer, nearest[r])
		}
		a.VPADDQ(step, centre, centre)
		a.SUBQ(op.Imm(8), k)
		a.CMPQ(k, op.Imm(0))
		a.JG(op.LabelRef("panels"))

		for r := range rows {
			a.VMOVUPD(least[r], best.Offset(64*r))
			a.VMOVDQU64(nearest[r], place.Offset(64*r))
		}
		// The results of four rows at a time are transposed so that rows are lanes. Then the
		// results of the eight sets are compared.
		for quad := 0; quad < 8; quad += 4 {
			var values, places []vec
			for half := range 2 {
				part := func(m op.Mem) (rows [4]op.Mem) {
					for r := range rows {
						rows[r] = m.Offset(64*(quad+r) + 32*half)
					}
					return rows
				}
				v, p := transposed(part(best)), transposed(part(place))
				value, at4 := leastOf(v[:], p[:])
				values, places = append(values, value), append(places, at4)
			}
			value, at4 := leastOf(values, places)
			a.VMOVUPD(value, best.Offset(64*quad))
			a.VMOVUPD(at4, place.Offset(64*quad))
		}
		key, near := argument("key"), argument("near")
		for r := range rows {
			row, v, bytes := a.GP64(), a.GP64(), r/4*4*64+r%4*8
			a.MOVLQSX(at(todo, 4*r), row)
			a.MOVQ(best.Offset(bytes), v)
			a.MOVQ(v, atIndex(key, row, 8, 0))
			a.MOVQ(place.Offset(bytes), v)
			a.MOVL(v.As32(), atIndex(near, row, 4, 0))
		}
		a.ADDQ(op.Imm(32), todo)
	})
	done()
}
