package batch

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// SortKey is a column by which rows are ordered, and the direction.
//
// The order is total. Numbers ascend; -0 equals +0; NaN comes after all numbers, and all NaN
// are equal. false comes before true. Text is ordered by bytes, and dates and timestamps by
// time. Descending reverses this order, also for NaN. All nulls are equal. In both directions
// they come last or, if NullsFirst is set, first.
type SortKey struct {
	Column     int
	Descending bool
	NullsFirst bool
}

// CheckSortable returns an error unless the columns of all keys exist and have types with an
// order, which are all types but vectors.
func CheckSortable(schema *arrow.Schema, keys []SortKey) error {
	cols := make([]int, len(keys))
	for i, k := range keys {
		cols[i] = k.Column
	}
	return checkKeys(schema, cols, "sort key")
}

// Comparer compares rows of two batches, which may be the same batch. It prepares the access to
// the columns once.
type Comparer struct {
	keys []SortKey
	a, b []view
}

// NewComparer returns a Comparer that compares rows of a with rows of b. Both batches are
// borrowed for as long as the comparer is used.
func NewComparer(a, b arrow.Record, keys []SortKey) (*Comparer, error) {
	if err := CheckSortable(a.Schema(), keys); err != nil {
		return nil, err
	}
	if err := CheckSortable(b.Schema(), keys); err != nil {
		return nil, err
	}
	c := &Comparer{keys: keys, a: make([]view, len(keys)), b: make([]view, len(keys))}
	for i, k := range keys {
		ca, cb := a.Column(k.Column), b.Column(k.Column)
		if !arrow.TypeEqual(ca.DataType(), cb.DataType()) {
			return nil, fmt.Errorf("sort key %d compares %s with %s", i+1, TypeName(ca.DataType()), TypeName(cb.DataType()))
		}
		c.a[i], c.b[i] = viewOf(ca), viewOf(cb)
	}
	return c, nil
}

// Compare returns -1, 0 or +1 if row i of the first batch comes before, is equal to, or comes
// after row j of the second batch.
func (c *Comparer) Compare(i, j int) int { return c.compareFrom(0, i, j) }

func (c *Comparer) compareFrom(first, i, j int) int {
	for k := first; k < len(c.keys); k++ {
		if r := compareKey(&c.a[k], i, &c.b[k], j, c.keys[k]); r != 0 {
			return r
		}
	}
	return 0
}

func compareKey(a *view, i int, b *view, j int, key SortKey) int {
	if a.valid != nil || b.valid != nil {
		switch na, nb := a.null(i), b.null(j); {
		case na && nb:
			return 0
		case na != nb:
			if na == key.NullsFirst {
				return -1
			}
			return 1
		}
	}
	c := compareValues(a, i, b, j)
	if key.Descending {
		return -c
	}
	return c
}

func compareValues(a *view, i int, b *view, j int) int {
	switch a.kind {
	case kindFloat64:
		return compareFloats(at[float64](a, i), at[float64](b, j))
	case kindFloat32:
		return compareFloats(float64(at[float32](a, i)), float64(at[float32](b, j)))
	case kindString, kindBinary:
		return bytes.Compare(a.text(i), b.text(j))
	default:
		return cmp.Compare(orderBits(a, i), orderBits(b, j))
	}
}

// compareFloats is cmp.Compare, except that NaN comes after all numbers and not before.
func compareFloats(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	}
	return cmp.Compare(b2i(x != x), b2i(y != y))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// orderBits returns 64 bits for a non-null value. If the bits of two values differ, their order
// as unsigned integers is the order of the values. Values with equal bits may differ, because
// only the first eight bytes of text are used.
func orderBits(v *view, i int) uint64 {
	const sign = 1 << 63
	switch v.kind {
	case kindBool:
		return uint64(b2i(v.bool(i)))
	case kindUint8, kindUint16, kindUint32, kindUint64:
		return uint64(v.integer(i))
	case kindFloat64:
		return floatOrderBits(at[float64](v, i))
	case kindFloat32:
		return floatOrderBits(float64(at[float32](v, i)))
	case kindString, kindBinary:
		return textPrefix(v.text(i))
	default:
		return uint64(v.integer(i)) ^ sign
	}
}

// floatOrderBits returns bits whose unsigned order is the order of floats: it inverts all bits
// of negative numbers, and the sign bit of other numbers. Both zeros have the same bits, and
// all NaN have the same bits.
func floatOrderBits(x float64) uint64 {
	if x != x {
		return math.MaxUint64
	}
	return kernel.OrderKey(x)
}

func textPrefix(text []byte) uint64 {
	var p uint64
	for k := range 8 {
		p <<= 8
		if k < len(text) {
			p |= uint64(text[k])
		}
	}
	return p
}

// entry is a row and the bits of its first key.
type entry struct {
	bits uint64
	row  int32
}

// SortIndices returns the row numbers of rec in the order of the keys. Rows that are equal in
// all keys keep their order. If there are no keys, all rows keep their order. The result uses
// the memory of dst if its capacity suffices.
//
// The first key decides most comparisons, so it is converted to 64 bits per row beforehand;
// rows in which it is null are sorted separately. If the bits of two rows are equal, all keys
// are compared, and then the row numbers, so that an unstable sort keeps the order of equal
// rows.
func SortIndices(rec arrow.Record, keys []SortKey, dst []int32) ([]int32, error) {
	rows := int(rec.NumRows())
	dst = slices.Grow(dst[:0], rows)[:rows]
	if len(keys) == 0 {
		for i := range dst {
			dst[i] = int32(i)
		}
		return dst, nil
	}
	c, err := NewComparer(rec, rec, keys)
	if err != nil {
		return nil, err
	}
	entries, nulls := firstKeyEntries(&c.a[0], keys[0])
	decided := 1
	if k := c.a[0].kind; k == kindString || k == kindBinary {
		decided = 0
	}
	slices.SortFunc(entries, func(x, y entry) int {
		if x.bits != y.bits {
			return cmp.Compare(x.bits, y.bits)
		}
		if r := c.compareFrom(decided, int(x.row), int(y.row)); r != 0 {
			return r
		}
		return cmp.Compare(x.row, y.row)
	})
	slices.SortFunc(nulls, func(x, y int32) int {
		if r := c.compareFrom(1, int(x), int(y)); r != 0 {
			return r
		}
		return cmp.Compare(x, y)
	})
	order := dst[:0]
	if keys[0].NullsFirst {
		order = append(order, nulls...)
	}
	for _, e := range entries {
		order = append(order, e.row)
	}
	if !keys[0].NullsFirst {
		order = append(order, nulls...)
	}
	return order, nil
}

func firstKeyEntries(v *view, key SortKey) (entries []entry, nulls []int32) {
	entries = make([]entry, 0, v.n)
	for i := range v.n {
		if v.null(i) {
			nulls = append(nulls, int32(i))
			continue
		}
		bits := orderBits(v, i)
		if key.Descending {
			bits = ^bits
		}
		entries = append(entries, entry{bits, int32(i)})
	}
	return entries, nulls
}
