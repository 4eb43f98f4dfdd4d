package kernel

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// A histogram has a sum for every bin of every column of bytes. The sum of bin b of column c
// has index c*HistogramStride+b or, if a sum is two words, twice that index. Sums wrap around:
// a caller that adds more rows than a sum can hold must fold the sums (see [FoldPairs]) before
// they can overflow.
const (
	// HistogramColumns is the largest number of columns of one histogram.
	HistogramColumns = 32
	// HistogramStride is the number of sums from one column to the next. It exceeds the 256
	// bins so that the sums of the same bin in neighbouring columns have different offsets in a
	// memory page. With equal offsets a load would wait for an earlier store, because
	// processors first compare only the offsets of their addresses.
	HistogramStride = 264
	// PackedRows is the number of rows of packed pairs that may be added before the sums must
	// be folded.
	PackedRows = 8192
	// PackedMax is the largest absolute value of either half of a packed pair. The sum of
	// PackedRows such values fits in a signed integer of 32 bits.
	PackedMax = 1 << 17
)

// Pack returns the packed pair of g and h: g·2^32 + h.
func Pack(g, h int64) int64 { return g<<32 + h }

// Unpack returns the two halves of a packed pair, or of a sum of packed pairs.
func Unpack(v int64) (g, h int64) {
	h = int64(int32(v))
	return (v - h) >> 32, h
}

// In a list of rows, the assembly reads up to histogramAhead entries after the current entry.
const histogramAhead = 16

// HistogramPacked adds pairs[r] to the sums of the bins of row r, for each r. Row r has the
// bins bins[r*stride:(r+1)*stride], one for each column.
func HistogramPacked(hist []int64, bins []byte, stride int, pairs []int64) {
	histogramRows(active, packedSums, hist, bins, stride, pairs, len(pairs))
}

// HistogramPackedAt is HistogramPacked for the listed rows only; bins and pairs hold all rows.
func HistogramPackedAt(hist []int64, bins []byte, stride int, pairs []int64, rows []int32) {
	histogramAt(active, packedSums, hist, bins, stride, pairs, rows)
}

// HistogramCounted is HistogramPacked with sums of two words: the sum of the pairs, and the
// number of rows.
func HistogramCounted(hist []int64, bins []byte, stride int, pairs []int64) {
	histogramRows(active, countedSums, hist, bins, stride, pairs, len(pairs))
}

// HistogramCountedAt is HistogramCounted for the listed rows only.
func HistogramCountedAt(hist []int64, bins []byte, stride int, pairs []int64, rows []int32) {
	histogramAt(active, countedSums, hist, bins, stride, pairs, rows)
}

// HistogramWide adds pairs[2*r] and pairs[2*r+1] to the two words of the sums of the bins
// of row r, for each r.
func HistogramWide(hist []int64, bins []byte, stride int, pairs []int64) {
	histogramRows(active, wideSums, hist, bins, stride, pairs, len(pairs)/2)
}

// HistogramWideAt is HistogramWide for the listed rows only.
func HistogramWideAt(hist []int64, bins []byte, stride int, pairs []int64, rows []int32) {
	histogramAt(active, wideSums, hist, bins, stride, pairs, rows)
}

// FoldPairs adds the halves of each packed sum from[i], as Unpack returns them, to to[2*i] and
// to[2*i+1].
func FoldPairs(to, from []int64) { foldHalves(active, to, from) }

func foldHalves(k dispatch, to, from []int64) {
	to = to[:2*len(from)]
	for k.avx2 && len(from) >= 4 {
		n := min(len(from)&^3, callSize)
		foldPairs(&to[0], &from[0], n)
		to, from = to[2*n:], from[n:]
	}
	for i, v := range from {
		pair := to[2*i:][:2]
		g, h := Unpack(v)
		pair[0] += g
		pair[1] += h
	}
}

// SubtractIntegers sets dst[i] = dst[i] - src[i] for every element of dst.
func SubtractIntegers(dst, src []int64) { subtractAll(active, dst, src) }

func subtractAll(k dispatch, dst, src []int64) {
	src = src[:len(dst)]
	for k.avx2 && len(dst) >= 4 {
		n := min(len(dst)&^3, callSize)
		subtractIntegers(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	for i, v := range src {
		dst[i] -= v
	}
}

// histogramSums is the layout of the sums.
type histogramSums int

const (
	packedSums histogramSums = iota
	countedSums
	wideSums
)

// words returns the number of words of a sum; pairWords returns the number of words of the pair
// of a row.
func (s histogramSums) words() int     { return 1 + min(int(s), 1) }
func (s histogramSums) pairWords() int { return 1 + int(s)/2 }

func checkHistogram(sums, words, stride int) {
	if stride < 0 || stride > HistogramColumns || sums < words*stride*HistogramStride {
		panic(fmt.Sprintf("kernel: %d words of sums of %d for %d columns", sums, words, stride))
	}
}

func histogramRows(k dispatch, s histogramSums, hist []int64, bins []byte, stride int, pairs []int64, n int) {
	checkHistogram(len(hist), s.words(), stride)
	if stride == 0 || n == 0 {
		return
	}
	if len(bins) < n*stride {
		panic(fmt.Sprintf("kernel: %d bytes for %d rows of %d columns", len(bins), n, stride))
	}
	if !k.avx2 {
		for r := range n {
			s.add(hist, bins[r*stride:][:stride], pairs[r*s.pairWords():])
		}
		return
	}
	for rows := callSize / stride; n > 0; n -= rows {
		rows = min(rows, n)
		switch s {
		case packedSums:
			histogramPacked(&hist[0], &bins[0], stride, &pairs[0], rows)
		case countedSums:
			histogramCounted(&hist[0], &bins[0], stride, &pairs[0], rows)
		default:
			histogramWide(&hist[0], &bins[0], stride, &pairs[0], rows)
		}
		bins, pairs = bins[rows*stride:], pairs[rows*s.pairWords():]
	}
}

func histogramAt(k dispatch, s histogramSums, hist []int64, bins []byte, stride int, pairs []int64, rows []int32) {
	checkHistogram(len(hist), s.words(), stride)
	if stride == 0 {
		return
	}
	if k.avx2 {
		rows = histogramList(s, hist, bins, stride, pairs, rows)
	}
	for _, r := range rows {
		s.add(hist, bins[int(r)*stride:][:stride], pairs[int(r)*s.pairWords():])
	}
}

// histogramList adds the rows of a list in assembly, except the last histogramAhead, and
// returns the remaining rows.
func histogramList(s histogramSums, hist []int64, bins []byte, stride int, pairs []int64, rows []int32) []int32 {
	n := len(rows) - histogramAhead
	if n <= 0 {
		return rows
	}
	checkList(rows, min(len(bins)/stride, len(pairs)/s.pairWords()))
	for step := callSize / stride; n > 0; n -= step {
		step = min(step, n)
		switch s {
		case packedSums:
			histogramPackedAt(&hist[0], &bins[0], stride, &pairs[0], &rows[0], step)
		case countedSums:
			histogramCountedAt(&hist[0], &bins[0], stride, &pairs[0], &rows[0], step)
		default:
			histogramWideAt(&hist[0], &bins[0], stride, &pairs[0], &rows[0], step)
		}
		rows = rows[step:]
	}
	return rows
}

// checkList panics unless every row number is from 0 to n-1. The assembly does not check that.
func checkList(rows []int32, n int) {
	var highest uint32
	all := len(rows) > 0
	for k := len(rows) &^ 7; k > 0; k = len(rows) &^ 7 {
		k = min(k, callSize)
		highest = max(highest, highestRow(&rows[0], k))
		rows = rows[k:]
	}
	for _, r := range rows {
		highest = max(highest, uint32(r))
	}
	if all && int(highest) >= n {
		panic(fmt.Sprintf("kernel: row %d of %d", int32(highest), n))
	}
}

// add adds the pair of one row to the sums of its bins.
func (s histogramSums) add(hist []int64, row []byte, pair []int64) {
	switch s {
	case packedSums:
		v, at := pair[0], 0
		for _, b := range row {
			hist[at+int(b)] += v
			at += HistogramStride
		}
	case countedSums:
		addTwo(hist, row, pair[0], 1)
	default:
		addTwo(hist, row, pair[0], pair[1])
	}
}

func addTwo(hist []int64, row []byte, v, w int64) {
	at := 0
	for _, b := range row {
		sum := hist[at+2*int(b):][:2]
		sum[0] += v
		sum[1] += w
		at += 2 * HistogramStride
	}
}

// PartitionRows appends each listed row to left if the table has 1 for the byte of the row, and
// to right if it has 0. It returns the number of rows in left. The byte of row r is
// bins[r*stride]. The order of the list is kept. left and right must each have the length of
// rows; left may be the same slice as rows.
func PartitionRows(rows []int32, bins []byte, stride int, table *[256]byte, left, right []int32) int {
	return partitionList(active, rows, bins, stride, table, left, right)
}

func partitionList(k dispatch, rows []int32, bins []byte, stride int, table *[256]byte, left, right []int32) int {
	left, right = left[:len(rows)], right[:len(rows)]
	entries := uint64(0)
	for i := 0; i < len(table); i += 8 {
		entries |= binary.NativeEndian.Uint64(table[i:])
	}
	if entries&^0x0101010101010101 != 0 {
		panic("kernel: a table for a partition has more than 0 and 1")
	}
	l, done := 0, 0
	if n := len(rows) - histogramAhead; k.avx2 && n > 0 {
		checkList(rows, (len(bins)+stride-1)/stride)
		for step := callSize; done < n; done += step {
			step = min(step, n-done)
			l += partitionRows(&rows[done], step, unsafe.SliceData(bins), stride, &table[0], &left[l], &right[done-l])
		}
	}
	for i, r := range rows[done:] {
		goes := int(table[bins[int(r)*stride]] & 1)
		left[l], right[done+i-l] = r, r
		l += goes
	}
	return l
}
