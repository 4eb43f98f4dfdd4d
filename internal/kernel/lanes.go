package kernel

import "math"

// A lane kernel computes the squared distances of rows to a group of centres, with one register
// per centre, and records the nearest centre of each row. Groups have 4 to 8 centres: eight
// accumulators, one feature and one difference fill the registers of amd64. With these five
// widths every k of at least 9 can be split into full groups. A narrower last group is padded
// with NaN centres, which never win.
//
// The bits of squared distances are compared as unsigned integers. This orders non-negative
// floats by value and puts every NaN after +Inf. For integers the compiler can also select the
// smaller without a branch; the processor could not predict branches on the nearest centre.

// noKey is the initial key of a search. It is greater than the key of every number, +Inf
// included, and no NaN has a smaller key.
const noKey = 0x7ff0000000000001

// scan compares one group of centres with the rows of x listed in todo. For each row of x, key
// has the bits of the smallest squared distance so far, and near has the centre at this
// distance. Groups are scanned in increasing order and the comparison is strict, so the centre
// with the lowest index wins a tie.
func (g *group) scan(x []float64, d int, todo []int32, key []uint64, near []int32) {
	switch g.width {
	case 4:
		scan4(x, d, g.lanes4, g.first, todo, key, near)
	case 5:
		scan5(x, d, g.lanes5, g.first, todo, key, near)
	case 6:
		scan6(x, d, g.lanes6, g.first, todo, key, near)
	case 7:
		scan7(x, d, g.lanes7, g.first, todo, key, near)
	case 8:
		scan8(x, d, g.lanes8, g.first, todo, key, near)
	}
}

func scan4(x []float64, d int, lanes [][4]float64, first int32, todo []int32, key []uint64, near []int32) {
	for _, i := range todo {
		row := x[int(i)*d : int(i)*d+d]
		lanes := lanes[:len(row)]
		var a0, a1, a2, a3 float64
		for j, v := range row {
			c := &lanes[j]
			t0 := v - c[0]
			a0 += float64(t0 * t0)
			t1 := v - c[1]
			a1 += float64(t1 * t1)
			t2 := v - c[2]
			a2 += float64(t2 * t2)
			t3 := v - c[3]
			a3 += float64(t3 * t3)
		}
		best, arg := key[i], near[i]
		if b := math.Float64bits(a0); b < best {
			best, arg = b, first
		}
		if b := math.Float64bits(a1); b < best {
			best, arg = b, first+1
		}
		if b := math.Float64bits(a2); b < best {
			best, arg = b, first+2
		}
		if b := math.Float64bits(a3); b < best {
			best, arg = b, first+3
		}
		key[i], near[i] = best, arg
	}
}

func scan5(x []float64, d int, lanes [][5]float64, first int32, todo []int32, key []uint64, near []int32) {
	for _, i := range todo {
		row := x[int(i)*d : int(i)*d+d]
		lanes := lanes[:len(row)]
		var a0, a1, a2, a3, a4 float64
		for j, v := range row {
			c := &lanes[j]
			t0 := v - c[0]
			a0 += float64(t0 * t0)
			t1 := v - c[1]
			a1 += float64(t1 * t1)
			t2 := v - c[2]
			a2 += float64(t2 * t2)
			t3 := v - c[3]
			a3 += float64(t3 * t3)
			t4 := v - c[4]
			a4 += float64(t4 * t4)
		}
		best, arg := key[i], near[i]
		if b := math.Float64bits(a0); b < best {
			best, arg = b, first
		}
		if b := math.Float64bits(a1); b < best {
			best, arg = b, first+1
		}
		if b := math.Float64bits(a2); b < best {
			best, arg = b, first+2
		}
		if b := math.Float64bits(a3); b < best {
			best, arg = b, first+3
		}
		if b := math.Float64bits(a4); b < best {
			best, arg = b, first+4
		}
		key[i], near[i] = best, arg
	}
}

func scan6(x []float64, d int, lanes [][6]float64, first int32, todo []int32, key []uint64, near []int32) {
	for _, i := range todo {
		row := x[int(i)*d : int(i)*d+d]
		lanes := lanes[:len(row)]
		var a0, a1, a2, a3, a4, a5 float64
		for j, v := range row {
			c := &lanes[j]
			t0 := v - c[0]
			a0 += float64(t0 * t0)
			t1 := v - c[1]
			a1 += float64(t1 * t1)
			t2 := v - c[2]
			a2 += float64(t2 * t2)
			t3 := v - c[3]
			a3 += float64(t3 * t3)
			t4 := v - c[4]
			a4 += float64(t4 * t4)
			t5 := v - c[5]
			a5 += float64(t5 * t5)
		}
		best, arg := key[i], near[i]
		if b := math.Float64bits(a0); b < best {
			best, arg = b, first
		}
		if b := math.Float64bits(a1); b < best {
			best, arg = b, first+1
		}
		if b := math.Float64bits(a2); b < best {
			best, arg = b, first+2
		}
		if b := math.Float64bits(a3); b < best {
			best, arg = b, first+3
		}
		if b := math.Float64bits(a4); b < best {
			best, arg = b, first+4
		}
		if b := math.Float64bits(a5); b < best {
			best, arg = b, first+5
		}
		key[i], near[i] = best, arg
	}
}

func scan7(x []float64, d int, lanes [][7]float64, first int32, todo []int32, key []uint64, near []int32) {
	for _, i := range todo {
		row := x[int(i)*d : int(i)*d+d]
		lanes := lanes[:len(row)]
		var a0, a1, a2, a3, a4, a5, a6 float64
		for j, v := range row {
			c := &lanes[j]
			t0 := v - c[0]
			a0 += float64(t0 * t0)
			t1 := v - c[1]
			a1 += float64(t1 * t1)
			t2 := v - c[2]
			a2 += float64(t2 * t2)
			t3 := v - c[3]
			a3 += float64(t3 * t3)
			t4 := v - c[4]
			a4 += float64(t4 * t4)
			t5 := v - c[5]
			a5 += float64(t5 * t5)
			t6 := v - c[6]
			a6 += float64(t6 * t6)
		}
		best, arg := key[i], near[i]
		if b := math.Float64bits(a0); b < best {
			best, arg = b, first
		}
		if b := math.Float64bits(a1); b < best {
			best, arg = b, first+1
		}
		if b := math.Float64bits(a2); b < best {
			best, arg = b, first+2
		}
		if b := math.Float64bits(a3); b < best {
			best, arg = b, first+3
		}
		if b := math.Float64bits(a4); b < best {
			best, arg = b, first+4
		}
		if b := math.Float64bits(a5); b < best {
			best, arg = b, first+5
		}
		if b := math.Float64bits(a6); b < best {
			best, arg = b, first+6
		}
		key[i], near[i] = best, arg
	}
}

func scan8(x []float64, d int, lanes [][8]float64, first int32, todo []int32, key []uint64, near []int32) {
	for _, i := range todo {
		row := x[int(i)*d : int(i)*d+d]
		lanes := lanes[:len(row)]
		var a0, a1, a2, a3, a4, a5, a6, a7 float64
		for j, v := range row {
			c := &lanes[j]
			t0 := v - c[0]
			a0 += float64(t0 * t0)
			t1 := v - c[1]
			a1 += float64(t1 * t1)
			t2 := v - c[2]
			a2 += float64(t2 * t2)
			t3 := v - c[3]
			a3 += float64(t3 * t3)
			t4 := v - c[4]
			a4 += float64(t4 * t4)
			t5 := v - c[5]
			a5 += float64(t5 * t5)
			t6 := v - c[6]
			a6 += float64(t6 * t6)
			t7 := v - c[7]
			a7 += float64(t7 * t7)
		}
		best, arg := key[i], near[i]
		if b := math.Float64bits(a0); b < best {
			best, arg = b, first
		}
		if b := math.Float64bits(a1); b < best {
			best, arg = b, first+1
		}
		if b := math.Float64bits(a2); b < best {
			best, arg = b, first+2
		}
		if b := math.Float64bits(a3); b < best {
			best, arg = b, first+3
		}
		if b := math.Float64bits(a4); b < best {
			best, arg = b, first+4
		}
		if b := math.Float64bits(a5); b < best {
			best, arg = b, first+5
		}
		if b := math.Float64bits(a6); b < best {
			best, arg = b, first+6
		}
		if b := math.Float64bits(a7); b < best {
			best, arg = b, first+7
		}
		key[i], near[i] = best, arg
	}
}
