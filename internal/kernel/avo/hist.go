package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The layout of histograms; package kernel has the same constants.
const (
	histogramStride = 264 // number of sums from one column to the next
	histogramAhead  = 16  // number of rows from the row that is added to the row that is prefetched
)

// histograms writes the functions that add pairs to histograms, and the partition of rows.
func histograms() {
	for _, form := range []addition{onePacked, oneCounted, oneWide} {
		histogram(form, false)
		histogram(form, true)
	}
	partition()
	highestRow()
	unpackPairs("foldPairs", "adds the halves of each of n packed sums, a multiple of four, to two integers of to.", false)
	subtractIntegers()
}

// addition is the kind of value that a row adds to each of its bins.
type addition int

const (
	onePacked  addition = iota // a packed pair
	oneCounted                 // a packed pair, and 1 in the next word
	oneWide                    // two integers
)

func (f addition) name() string { return [...]string{"Packed", "Counted", "Wide"}[f] }

// size returns the size of a sum in bytes.
func (f addition) size() int {
	if f == onePacked {
		return 8
	}
	return 16
}

// histogram writes the function that adds rows to the sums of their bins. The rows are
// consecutive or, if listed is set, given by a list; listed rows are prefetched histogramAhead
// rows before they are added.
func histogram(f addition, listed bool) {
	name, signature := "histogram"+f.name(), "func(hist *int64, bins *byte, stride int, pairs *int64, n int)"
	doc := "adds the pairs of n rows to the sums of their bins, for stride columns."
	if listed {
		name, signature = name+"At", "func(hist *int64, bins *byte, stride int, pairs *int64, rows *int32, n int)"
		doc = "adds the pairs of the n listed rows to the sums of their bins, for stride columns. The list goes on for 16 rows."
	}
	function(name, doc, signature)
	hist, bins, stride, pairs, n := argument("hist"), argument("bins"), argument("stride"), argument("pairs"), argument("n")
	var ones reg.VecVirtual
	if f == oneCounted {
		one := a.GP64()
		a.MOVQ(op.U64(1), one)
		ones = a.XMM()
		a.VMOVQ(one, ones)
	}
	if !listed {
		while(n, 1, func() {
			addRow(f, hist, bins, stride, op.Mem{Base: pairs}, ones)
			a.ADDQ(stride, bins)
			a.ADDQ(op.Imm(uint64(f.pairSize())), pairs)
		})
		done()
		return
	}
	rows := argument("rows")
	while(n, 1, func() {
		row, place, last := a.GP64(), a.GP64(), a.GP64()
		a.MOVLQSX(at(rows, 4*histogramAhead), row)
		a.MOVQ(row, place)
		a.IMULQ(stride, place)
		a.PREFETCHT0(atIndex(bins, place, 1, 0))
		a.LEAQ(atIndex(place, stride, 1, -1), last)
		a.PREFETCHT0(atIndex(bins, last, 1, 0))
		f.scaled(row)
		a.PREFETCHT0(atIndex(pairs, row, 8, 0))

		a.MOVLQSX(at(rows, 0), row)
		start := a.GP64()
		a.MOVQ(row, start)
		a.IMULQ(stride, start)
		a.ADDQ(bins, start)
		f.scaled(row)
		addRow(f, hist, start, stride, atIndex(pairs, row, 8, 0), ones)
		a.ADDQ(op.Imm(4), rows)
	})
	done()
}

// pairSize returns the size of the pair of a row in bytes.
func (f addition) pairSize() int {
	if f == oneWide {
		return 16
	}
	return 8
}

// scaled converts a row number to the index of its pair in words of eight bytes.
func (f addition) scaled(row reg.GPVirtual) {
	if f == oneWide {
		a.ADDQ(row, row)
	}
}

// addRow writes the addition of one row, whose bins begin at start.
func addRow(f addition, hist, start, stride reg.GPVirtual, pair op.Mem, ones reg.VecVirtual) {
	sums, bin, left := copyOf(hist), copyOf(start), copyOf(stride)
	value := a.GP64()
	two := a.XMM()
	switch f {
	case onePacked:
		a.MOVQ(pair, value)
	case oneCounted:
		a.VMOVQ(pair, two)
		a.VPUNPCKLQDQ(ones, two, two)
	case oneWide:
		a.VMOVDQU(pair, two)
	}
	column := func(c int) {
		b := a.GP64()
		a.MOVBQZX(at(bin, c), b)
		place := atIndex(sums, b, 8, c*histogramStride*f.size())
		if f == onePacked {
			a.ADDQ(value, place)
			return
		}
		a.ADDQ(b, b)
		sum := a.XMM()
		a.VPADDQ(place, two, sum)
		a.VMOVDQU(sum, place)
	}
	for _, step := range []int{4, 1} {
		while(left, step, func() {
			for c := range step {
				column(c)
			}
			a.ADDQ(op.Imm(uint64(step)), bin)
			a.ADDQ(op.I32(step*histogramStride*f.size()), sums)
		})
	}
}

// partition writes the function that appends each row to one of two lists, according to the
// table entry for a byte of the row.
func partition() {
	function("partitionRows", "appends each of the n listed rows to left where the table has 1 for its byte, else, where it has\n"+
		"0, to right, and returns how many went left. The list goes on for 16 rows. left may be the list.",
		"func(rows *int32, n int, bins *byte, stride int, table *byte, left *int32, right *int32) int")
	rows, n, bins, stride := argument("rows"), argument("n"), argument("bins"), argument("stride")
	table, left, right := argument("table"), argument("left"), argument("right")
	begin := copyOf(left)
	while(n, 1, func() {
		row, place, goes := a.GP64(), a.GP64(), a.GP64()
		a.MOVLQSX(at(rows, 4*histogramAhead), place)
		a.IMULQ(stride, place)
		a.PREFETCHT0(atIndex(bins, place, 1, 0))
		a.MOVLQSX(at(rows, 0), row)
		a.MOVQ(row, place)
		a.IMULQ(stride, place)
		a.MOVBQZX(atIndex(bins, place, 1, 0), goes)
		a.MOVBQZX(atIndex(table, goes, 1, 0), goes)
		a.ADDQ(op.Imm(4), rows)
		a.MOVL(row.As32(), at(left, 0))
		a.MOVL(row.As32(), at(right, 0))
		a.LEAQ(atIndex(left, goes, 4, 0), left)
		a.XORQ(op.I8(1), goes)
		a.LEAQ(atIndex(right, goes, 4, 0), right)
	})
	a.SUBQ(begin, left)
	a.SHRQ(op.Imm(2), left)
	a.Store(left, a.ReturnIndex(0))
	done()
}

// highestRow writes the search for the largest row number of a list.
func highestRow() {
	function("highestRow", "returns the largest of n numbers, a multiple of eight and not 0, taken as unsigned.", "func(rows *int32, n int) uint32")
	rows, n := argument("rows"), argument("n")
	most := a.YMM()
	a.VPXOR(most, most, most)
	while(n, 8, func() {
		a.VPMAXUD(at(rows, 0), most, most)
		a.ADDQ(op.Imm(32), rows)
	})
	half := a.XMM()
	a.VEXTRACTI128(op.U8(1), most, half)
	x := most.AsX()
	a.VPMAXUD(half, x, x)
	a.VPSHUFD(op.U8(0x4e), x, half)
	a.VPMAXUD(half, x, x)
	a.VPSHUFD(op.U8(0xb1), x, half)
	a.VPMAXUD(half, x, x)
	result := a.GP64()
	a.VMOVD(x, result.As32())
	a.Store(result.As32(), a.ReturnIndex(0))
	done()
}

// subtractIntegers writes the loop that subtracts integers.
func subtractIntegers() {
	function("subtractIntegers", "does dst[i] -= src[i] for n integers, a multiple of four.", "func(dst *int64, src *int64, n int)")
	dst, src, n := argument("dst"), argument("src"), argument("n")
	for _, step := range []int{16, 4} {
		while(n, step, func() {
			for i := 0; i < step; i += 4 {
				v := a.YMM()
				a.VMOVDQU(at(dst, 8*i), v)
				a.VPSUBQ(at(src, 8*i), v, v)
				a.VMOVDQU(v, at(dst, 8*i))
			}
			a.ADDQ(op.I32(8*step), dst)
			a.ADDQ(op.I32(8*step), src)
		})
	}
	done()
}
