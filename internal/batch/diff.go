package batch

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
)

// Diff describes the first difference between two batches of supported types. It returns "" if
// their schemas are equal and all values are the same. Floats are compared by bits, so a NaN
// equals a NaN of the same bits, and -0 differs from +0. The layout of buffers does not matter.
func Diff(a, b arrow.Record) string {
	switch {
	case !a.Schema().Equal(b.Schema()):
		return fmt.Sprintf("columns (%s) and (%s)", describe(a.Schema()), describe(b.Schema()))
	case a.NumRows() != b.NumRows():
		return fmt.Sprintf("%d and %d rows", a.NumRows(), b.NumRows())
	}
	for c := range int(a.NumCols()) {
		va, vb := viewOf(a.Column(c)), viewOf(b.Column(c))
		if sameFixed(&va, &vb) {
			continue
		}
		for i := range va.n {
			if !sameValue(&va, &vb, i) {
				return fmt.Sprintf("column %q, row %d: %s and %s", a.ColumnName(c), i, showValue(&va, i), showValue(&vb, i))
			}
		}
	}
	return ""
}

// sameFixed reports whether two columns of numbers, or of vectors of one dimension, have no
// nulls and the same bytes. It is faster than a comparison of single values. If it returns
// false, the columns may still be the same.
func sameFixed(a, b *view) bool {
	if a.valid != nil || b.valid != nil || a.n != b.n {
		return false
	}
	switch a.kind {
	case kindVector:
		return bytes.Equal(bytesOf(a.f64[:a.n*a.dim]), bytesOf(b.f64[:b.n*b.dim]))
	case kindFloat64, kindInt64:
		return bytes.Equal(bytesOf(unsafeSlice[uint64](a)), bytesOf(unsafeSlice[uint64](b)))
	case kindFloat32, kindInt32:
		return bytes.Equal(bytesOf(unsafeSlice[uint32](a)), bytesOf(unsafeSlice[uint32](b)))
	}
	return false
}

func showValue(v *view, i int) string {
	if v.null(i) {
		return "null"
	}
	return string(v.appendValue(nil, i))
}

func sameValue(a, b *view, i int) bool {
	if a.null(i) || b.null(i) {
		return a.null(i) == b.null(i)
	}
	switch a.kind {
	case kindBool:
		return a.bool(i) == b.bool(i)
	case kindString, kindBinary:
		return bytes.Equal(a.text(i), b.text(i))
	case kindVector, kindList:
		return bytes.Equal(bytesOf(a.dense64(i)), bytesOf(b.dense64(i)))
	case kindVector32, kindList32:
		return bytes.Equal(bytesOf(a.dense32(i)), bytesOf(b.dense32(i)))
	case kindSparse:
		ia, xa := a.sparse(i)
		ib, xb := b.sparse(i)
		return bytes.Equal(bytesOf(ia), bytesOf(ib)) && bytes.Equal(bytesOf(xa), bytesOf(xb))
	case kindFloat32:
		return at[uint32](a, i) == at[uint32](b, i)
	case kindFloat64:
		return at[uint64](a, i) == at[uint64](b, i)
	}
	return a.integer(i) == b.integer(i)
}
