package main

import (
	"fmt"
	"math"

	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// searches writes the search of the nearest centre.
func searches() {
	constants = map[uint64]op.Mem{}
	nearestRows()
}

// sequence returns the memory of a constant that holds the 64-bit integers 0, 1, …, count-1.
func sequence(name string, count int) op.Mem {
	m := a.StaticGlobal(name)
	a.DataAttributes(rodata)
	for i := range count {
		a.AppendDatum(op.U64(i))
	}
	return m
}

// nearestRows writes the search of the nearest centre. The squared distances of four rows to
// eight centres stay in registers during the loop over features. Centres are divided into four
// interleaved sets. For each row and set, the least distance so far and its centre are in
// memory between panels. Centres are compared in ascending order and strictly, so that the
// lowest centre wins a tie and NaN never wins.
func nearestRows() {
	function("nearestRows", "finds the nearest of k centres for n rows of x, a multiple of four, which todo lists:\n"+
		"the squared distance goes to key and the centre to near, at the row's place. Where no distance is\n"+
		"less than +Inf, near is -1. Centres stand in panels, padded with NaN.",
		"func(x *float64, d int, todo *int32, n int, panels *float64, k int, key *uint64, near *int32)")
	ascending := sequence("sequence", 4)
	best, place := a.AllocLocal(128), a.AllocLocal(128)
	part := func(m op.Mem, r int) op.Mem { return m.Offset(32 * r) }
	todo, n := argument("todo"), argument("n")
	while(n, 4, func() {
		d := argument("d")
		var rows [4]reg.GPVirtual
		for r := range rows {
			rows[r] = a.GP64()
			a.MOVLQSX(at(todo, 4*r), rows[r])
			a.IMULQ(d, rows[r])
			a.SHLQ(op.Imm(3), rows[r])
			a.ADDQ(parameter("x"), rows[r])
		}
		infinite, none := load(num(math.Inf(1))), load(bitsOf(^uint64(0)))
		for r := range rows {
			a.VMOVUPD(infinite, part(best, r))
			a.VMOVUPD(none, part(place, r))
		}
		panel, k, j := argument("panels"), argument("k"), a.GP64()
		centre := a.YMM()
		a.VMOVDQU(ascending, centre)

		// scan writes the loop over one panel, of which it uses the first width vectors of four
		// lanes; width is 2 or 1.
		scan := func(width int) {
			acc := ymms(4 * width)
			zero(acc...)
			a.XORQ(j, j)
			features(fmt.Sprint("features", width), j, d, func() {
				lanes := ymms(width)
				for h, v := range lanes {
					a.VMOVUPD(at(panel, 32*h), v)
				}
				for r, p := range rows {
					v := a.YMM()
					a.VBROADCASTSD(atIndex(p, j, 8, 0), v)
					for h := range lanes {
						addSquare(float64s(), v, lanes[h], acc[r*width+h])
					}
				}
				a.ADDQ(op.Imm(64), panel)
			})
			centres := []vec{centre}
			if width == 2 {
				centres = append(centres, addInts(centre, bitsOf(4)))
			}
			for r := range rows {
				b, p := load(part(best, r)), load(part(place, r))
				for h, c := range centres {
					nearer := compare(less, acc[r*width+h], b)
					a.VMINPD(b, acc[r*width+h], b)
					a.VBLENDVPD(nearer, c, p, p)
				}
				a.VMOVUPD(b, part(best, r))
				a.VMOVUPD(p, part(place, r))
			}
			a.VPADDQ(bitsOf(8), centre, centre)
		}
		a.Label("panels")
		a.CMPQ(k, op.Imm(5))
		a.JLT(op.LabelRef("last"))
		scan(2)
		a.SUBQ(op.Imm(8), k)
		a.JMP(op.LabelRef("panels"))
		a.Label("last")
		a.CMPQ(k, op.Imm(1))
		a.JLT(op.LabelRef("found"))
		scan(1)
		a.Label("found")

		// The results are transposed so that rows are lanes. Then the results of the four sets
		// of centres are compared.
		values := transposed([4]op.Mem{part(best, 0), part(best, 1), part(best, 2), part(best, 3)})
		places := transposed([4]op.Mem{part(place, 0), part(place, 1), part(place, 2), part(place, 3)})
		value, at4 := leastOf(values[:], places[:])
		a.VMOVUPD(value, part(best, 0))
		a.VMOVUPD(at4, part(place, 0))
		key, near := argument("key"), argument("near")
		for r := range rows {
			row, v := a.GP64(), a.GP64()
			a.MOVLQSX(at(todo, 4*r), row)
			a.MOVQ(best.Offset(8*r), v)
			a.MOVQ(v, atIndex(key, row, 8, 0))
			a.MOVQ(place.Offset(8*r), v)
			a.MOVL(v.As32(), atIndex(near, row, 4, 0))
		}
		a.ADDQ(op.Imm(16), todo)
	})
	done()
}

// leastOf returns, for each lane, the least of several values and its place. If several values
// are the least, it returns the lowest of their places.
func leastOf(values, places []vec) (value, place vec) {
	value, place = values[0], places[0]
	for l := 1; l < len(values); l++ {
		lower := greaterInts(place, places[l])
		better := either(compare(less, values[l], value), both(lower, compare(equal, values[l], value)))
		value, place = choose(better, values[l], value), choose(better, places[l], place)
	}
	return value, place
}

// features writes a loop that runs body for j from 0 to d-1; d may be 0.
func features(label string, j, d reg.GPVirtual, body func()) {
	a.CMPQ(j, d)
	a.JGE(op.LabelRef(label + "end"))
	a.Label(label)
	body()
	a.INCQ(j)
	a.CMPQ(j, d)
	a.JLT(op.LabelRef(label))
	a.Label(label + "end")
}

// transposed loads the rows of a matrix of four by four, and returns its columns.
func transposed(rows [4]op.Mem) [4]vec {
	r0, r2 := load(rows[0]), load(rows[2])
	lo01, hi01, lo23, hi23 := a.YMM(), a.YMM(), a.YMM(), a.YMM()
	a.VUNPCKLPD(rows[1], r0, lo01)
	a.VUNPCKHPD(rows[1], r0, hi01)
	a.VUNPCKLPD(rows[3], r2, lo23)
	a.VUNPCKHPD(rows[3], r2, hi23)
	c := [4]vec{a.YMM(), a.YMM(), a.YMM(), a.YMM()}
	a.VPERM2F128(op.Imm(0x20), lo23, lo01, c[0])
	a.VPERM2F128(op.Imm(0x20), hi23, hi01, c[1])
	a.VPERM2F128(op.Imm(0x31), lo23, lo01, c[2])
	a.VPERM2F128(op.Imm(0x31), hi23, hi01, c[3])
	return c
}
