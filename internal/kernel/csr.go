package kernel

import (
	"math"
	"unsafe"
)

// DotCSR multiplies sparse rows by a vector: out[i] is acc = acc + value*w[column]
// from 0 over the entries of row i in their order, for each row of x.
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

// AddScaledCSR adds to out the sparse rows of x scaled by coef, in row order
// and the order of the entries: out[column] = out[column] + coef[i]*value. It is
// the gradient of a linear model; an absent entry leaves out as it is.
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

// mostAhead is how many entries ahead of those that are added others are fetched from
// memory at most: rows that are taken in blocks which stay in the cache come to them next.
const mostAhead = 1 << 12

// ahead returns how many bytes from the columns and the values of rows lo to hi those lie
// that come next, as many if there are so many, or fewer: those behind them, or where there
// are none the first of what Before was told.
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

// Before tells that the rows of y are the ones that come next where x ends with the last of
// its entries: AddScaledCSR has them fetched from memory meanwhile. It changes no result.
func (x *CSR) Before(y *CSR) { x.next = y }

// checked returns how many rows from row i on are for one call into assembly, which
// trusts that entries lie within the slices and columns below d: 0 where row i is not.
func (x CSR) checked(k dispatch, i, d int) int { return x.checkedUpTo(k, i, d, callSize) }

// checkedUpTo is checked for rows that have no more than some entries in all, or one row that
// has more.
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

// Checked returns x, which knows that its columns are below d and its rows in order if they
// are: functions then need not look at each of them again. They must not be changed afterwards;
// those OnDisk are not believed.
func (x CSR) Checked(d int) CSR { return checkedCSR(active, x, d) }

func checkedCSR(k dispatch, x CSR, d int) CSR {
	if n := x.Rows(); k.avx2 && n > 0 && !x.OnDisk && x.ordered() && columnsBelow(x.Col[x.RowPtr[0]:x.RowPtr[n]], d) {
		x.below = d
	}
	return x
}

// ordered reports whether rows begin where those before them end, and all lie within the
// entries.
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

// CheckedRange makes part the rows from lo to hi, which are Checked: they are looked at unless
// x is Checked, which it becomes once all rows were asked for, one range behind the other from
// the first. Rows that are gone through in pieces are in the cache then anyway.
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

// Range returns the rows from lo to hi.
func (x CSR) Range(lo, hi int) CSR {
	x.RowPtr = x.RowPtr[lo : hi+1]
	return x
}

// columnsBelow reports whether all columns are from 0 to d-1, with assembly.
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
// sums[2*column+1] = sums[2*column+1] + value*value; and makes top[column] the largest
// absolute value. No entry is NaN.
func AddMomentsCSR(x CSR, sums, top []float64) { addMomentsCSR(active, x, sums, top) }

// momentEntries is how many entries AddMomentsCSR takes at a time: those whose columns the
// assembly has fetched ahead, so that looking at them does not wait for memory.
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

// SquareCSR adds to out the squares of the entries of the sparse rows of x,
// weighted by h, in row order and the order of the entries: out[column] =
// out[column] + (h[i]*value)*value. It is the diagonal of the Hessian of a
// linear model. A nil h means that every row weighs 1.
func SquareCSR(x CSR, h, out []float64) {
	for i := range x.Rows() {
		weight := 1.0
		if h != nil {
			weight = h[i]
		}
		col, val := x.Row(i)
		col = col[:len(val)]
		for p, v := range val {
			out[col[p]] += float64(float64(weight*v) * v)
		}
	}
}
