package kernel

import (
	"math"
	"unsafe"
)

// DotCSR multiplies sparse rows by a vector. For each row i of x, out[i] is computed by the
// steps acc = acc + value*w[column] for the entries of the row in order, with acc = 0 at the
// beginning.
func DotCSR(x CSR, w, out []float64) {
	dotCSR(active, x, w, out)
	OneNaN(out[:x.Rows()])
}

func dotCSR(k dispatch, x CSR, w, out []float64) {
	n := x.Rows()
	out = out[:n]
	for i := 0; i < n; {
		if m := x.checked(k, i, len(w)); m > 0 {
			dotCSR64(&x.RowPtr[i], m, unsafe.SliceData(x.Col), unsafe.SliceData(x.Val), unsafe.SliceData(w), &out[i])
			i += m
			continue
		}
		col, val := x.Row(i)
		col = col[:len(val)]
		var acc float64
		for p, v := range val {
			acc += float64(v * w[col[p]])
		}
		out[i] = acc
		i++
	}
}

// AddScaledCSR adds to out the sparse rows of x scaled by coef, in row order and the order of
// the entries: out[column] = out[column] + coef[i]*value. An absent entry does not change out.
// The result is the gradient of a linear model.
func AddScaledCSR(x CSR, coef, out []float64) { addScaledCSR(active, x, coef, out) }

func addScaledCSR(k dispatch, x CSR, coef, out []float64) {
	n := x.Rows()
	coef = coef[:n]
	for i := 0; i < n; {
		if m := x.checked(k, i, len(out)); m > 0 {
			col, val := x.ahead(i, i+m)
			addScaledCSR64(&x.RowPtr[i], m, unsafe.SliceData(x.Col), unsafe.SliceData(x.Val), &coef[i], unsafe.SliceData(out), col, val)
			i += m
			continue
		}
		c := coef[i]
		col, val := x.Row(i)
		col = col[:len(val)]
		for p, v := range val {
			out[col[p]] += float64(c * v)
		}
		i++
	}
}

// mostAhead bounds the distance from the current entries to the prefetched entries, so that the
// latter are still in the cache when they are used.
const mostAhead = 1 << 12

// ahead returns the distances, in bytes, at which columns (col) and values (val) are prefetched
// while rows lo to hi-1 are added. The prefetched entries come after row hi-1. If x has none,
// they are the first entries of the block given to Before.
func (x CSR) ahead(lo, hi int) (col, val int) {
	from, to := x.RowPtr[lo], x.RowPtr[hi]
	count := min(int(to-from), mostAhead, min(len(x.Col), len(x.Val))-int(to))
	if y := x.next; y != nil && count == 0 && y.Rows() > 0 {
		if first := y.RowPtr[0]; from < to && 0 <= first && first < int64(min(len(y.Col), len(y.Val))) {
			return int(uintptr(unsafe.Pointer(&y.Col[first])) - uintptr(unsafe.Pointer(&x.Col[from]))),
				int(uintptr(unsafe.Pointer(&y.Val[first])) - uintptr(unsafe.Pointer(&x.Val[from])))
		}
	}
	return 4 * count, 8 * count
}

// Before declares that the rows of y are used after the rows of x, so that AddScaledCSR
// prefetches the first entries of y at the end of x. It affects only speed.
func (x *CSR) Before(y *CSR) { x.next = y }

// checked returns the number of rows, beginning with row i, that can be passed to one call of
// assembly. The number is 0 if row i is not valid. The check is needed because the assembly
// tests neither that entries are within the slices nor that columns are below d.
func (x CSR) checked(k dispatch, i, d int) int { return x.checkedUpTo(k, i, d, callSize) }

// checkedUpTo does the work of checked, with size in place of callSize as the limit for the
// number of entries of all rows together. A single row may have more entries.
func (x CSR) checkedUpTo(k dispatch, i, d, size int) int {
	if !k.avx2 {
		return 0
	}
	known, n := x.below > 0 && x.below <= d, x.Rows()
	if known && x.RowPtr[n]-x.RowPtr[i] <= int64(size) {
		return n - i
	}
	lo, m := x.RowPtr[i], 0
	end := lo
	for _, next := range x.RowPtr[i+1:] {
		if next < end || next-lo > int64(size) && (m > 0 || next-lo > callSize) {
			break
		}
		end = next
		m++
	}
	if lo < 0 || end > int64(min(len(x.Col), len(x.Val))) {
		return 0
	}
	if !known && !columnsBelow(x.Col[lo:end], d) {
		return 0
	}
	return m
}

// Checked tests whether the columns of x are below d and its rows ordered (see ordered). If so,
// it returns x with a mark, so that functions need not test this again; the columns and rows
// must not be changed afterwards. If x.OnDisk is set, columns are tested before every use
// nevertheless.
func (x CSR) Checked(d int) CSR { return checkedCSR(active, x, d) }

func checkedCSR(k dispatch, x CSR, d int) CSR {
	if n := x.Rows(); k.avx2 && n > 0 && !x.OnDisk && x.ordered() && columnsBelow(x.Col[x.RowPtr[0]:x.RowPtr[n]], d) {
		x.below = d
	}
	return x
}

// ordered reports whether RowPtr is ascending and within the lengths of Col and Val.
func (x CSR) ordered() bool {
	end := x.RowPtr[0]
	if end < 0 {
		return false
	}
	for _, next := range x.RowPtr[1:] {
		if next < end {
			return false
		}
		end = next
	}
	return end <= int64(min(len(x.Col), len(x.Val)))
}

// CheckedRange sets part to the rows lo to hi-1 of x, and checks them as Checked does, unless x
// has the mark of Checked. x gets the mark once all rows were requested in consecutive ranges
// from the first row. Thus rows that are processed in ranges are checked while they are in the
// cache.
func (x *CSR) CheckedRange(part *CSR, lo, hi, d int) {
	if x.below > 0 && x.below <= d {
		part.RowPtr, part.Col, part.Val = x.RowPtr[lo:hi+1], x.Col, x.Val
		part.OnDisk, part.next, part.below, part.seen, part.limit = x.OnDisk, x.next, x.below, 0, 0
		return
	}
	*part = checkedRange(active, x, lo, hi, d)
}

func checkedRange(k dispatch, x *CSR, lo, hi, d int) CSR {
	part := checkedCSR(k, x.Range(lo, hi), d)
	part.seen, part.limit = 0, 0
	if lo == 0 {
		x.seen, x.limit = 0, d
	}
	if lo == x.seen && part.below == d && d == x.limit && hi > lo {
		if x.seen = hi; hi == x.Rows() {
			x.below = d
		}
	}
	return part
}

// Range returns the rows lo to hi-1.
func (x CSR) Range(lo, hi int) CSR {
	x.RowPtr = x.RowPtr[lo : hi+1]
	return x
}

// columnsBelow reports whether all columns are from 0 to d-1; it uses assembly.
func columnsBelow(col []int32, d int) bool {
	const block = 64
	if len(col) >= block {
		whole := len(col) &^ (block - 1)
		top := highestColumn64(&col[0], whole)
		if whole < len(col) {
			top = max(top, highestColumn64(&col[len(col)-block], block))
		}
		return int64(top) < int64(d)
	}
	for _, j := range col {
		if uint64(int64(j)) >= uint64(d) {
			return false
		}
	}
	return true
}

// AddMomentsCSR adds to sums the entries of the sparse rows of x and their squares, in row
// order and the order of the entries: sums[2*column] = sums[2*column] + value and
// sums[2*column+1] = sums[2*column+1] + value*value. It also sets top[column] to the absolute
// value of the entry if that is larger. The caller must not pass NaN entries.
func AddMomentsCSR(x CSR, sums, top []float64) { addMomentsCSR(active, x, sums, top) }

// momentEntries is the number of entries that AddMomentsCSR passes to one call of assembly. The
// previous call has prefetched their columns, so checking them does not wait for memory.
const momentEntries = 2048

func addMomentsCSR(k dispatch, x CSR, sums, top []float64) {
	sums = sums[:2*len(top)]
	for i := 0; i < x.Rows(); {
		if m := x.checkedUpTo(k, i, len(top), momentEntries); m > 0 {
			addMomentsCSR64(&x.RowPtr[i], m, unsafe.SliceData(x.Col), unsafe.SliceData(x.Val), unsafe.SliceData(sums), unsafe.SliceData(top))
			i += m
			continue
		}
		col, val := x.Row(i)
		col = col[:len(val)]
		for p, v := range val {
			j := int(col[p])
			top[j] = max(top[j], math.Abs(v))
			sums[2*j] += v
			sums[2*j+1] += float64(v * v)
		}
		i++
	}
}
