package operators

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// JoinKeys has pairs of columns. Each pair has one column of the left dataset and one of the
// right dataset. Two rows are partners if they are equal in all pairs; see On.
type JoinKeys struct{ left, right []string }

// On returns the keys of joins in which rows are partners if they are equal in the given
// columns. Both datasets must have these columns. Equal adds columns whose names differ:
//
//	operators.On("country").Equal("customer_id", "id")
//
// Values are compared as in GroupBy: integers by value, whatever their width; -0 equals +0; and
// all NaNs are equal. SQL compares values in the same way, except that databases differ in how
// they compare NaN. Unlike in GroupBy, a null does not equal any value, not even another null.
//
// The types of two columns must be comparable: integers with integers; float32 and float64 with
// each other; bools, text, bytes and dates with the same type; timestamps with timestamps of
// the same unit and time zone. Unsigned integers of 64 bits cannot be compared with signed
// integers, as each of these types has values that the other type does not have.
func On(columns ...string) JoinKeys {
	return JoinKeys{left: slices.Clone(columns), right: slices.Clone(columns)}
}

// Equal returns the keys with an additional pair: the column left of the left dataset and the
// column right of the right dataset. Each column may occur only once.
func (k JoinKeys) Equal(left, right string) JoinKeys {
	return JoinKeys{left: append(slices.Clone(k.left), left), right: append(slices.Clone(k.right), right)}
}

// String returns the text that plans show, such as "country, customer_id = id".
func (k JoinKeys) String() string {
	parts := make([]string, len(k.left))
	for i, name := range k.left {
		if parts[i] = name; k.right[i] != name {
			parts[i] += " = " + k.right[i]
		}
	}
	return strings.Join(parts, ", ")
}

// joinColumns has the indices of the key columns of each side. left[i] and right[i] are a pair.
type joinColumns struct{ left, right []int }

// check reports whether the datasets can be joined by the keys. If they cannot, it records a
// misuse. Both datasets must be usable.
func (on JoinKeys) check(op string, left, right *engine.Dataset) bool {
	b := left.Builder()
	if len(on.left) == 0 {
		b.Errorf(`%s: no key is given: name at least one column, as in On("id")`, op)
		return false
	}
	var cols joinColumns
	var okLeft, okRight bool
	cols.left, okLeft = sideColumns(op, "left", left, on.left)
	cols.right, okRight = sideColumns(op, "right", right, on.right)
	if !okLeft || !okRight {
		return false
	}
	ok := true
	for i := range cols.left {
		l, r := arrowrows.Arrow(left.Schema()).Field(cols.left[i]), arrowrows.Arrow(right.Schema()).Field(cols.right[i])
		if why := incomparable(l.Type, r.Type); why != "" {
			b.Errorf("%s: the key %q is %s on the left and %q is %s on the right: %s",
				op, l.Name, batch.TypeName(l.Type), r.Name, batch.TypeName(r.Type), why)
			ok = false
		}
	}
	return ok
}

// sent returns the two datasets without the columns that a join does not need, and the key
// columns of the join. A join needs the keys and the columns of readLeft and readRight; a nil
// schema means all columns.
func (on JoinKeys) sent(op string, left, right *engine.Dataset, readLeft, readRight *arrow.Schema) (l, r *engine.Dataset, cols joinColumns) {
	narrow := func(d *engine.Dataset, keys []string, read *arrow.Schema) *engine.Dataset {
		if read == nil {
			return d
		}
		if names := columnsOfKeysAnd(read, keys); len(names) < d.Schema().Len() {
			left.Builder().Within(op, func() { d = Select(d, names...) })
		}
		return d
	}
	l, r = narrow(left, on.left, readLeft), narrow(right, on.right, readRight)
	cols.left, _ = sideColumns(op, "left", l, on.left)
	cols.right, _ = sideColumns(op, "right", r, on.right)
	return l, r, cols
}

// sideColumns returns the indices of the key columns of one side. If names is not valid, it
// records a misuse and returns false.
func sideColumns(op, side string, d *engine.Dataset, names []string) ([]int, bool) {
	b := d.Builder()
	cols, ok := make([]int, len(names)), true
	for i, name := range names {
		at, err := batch.FindColumn(arrowrows.Arrow(d.Schema()), name)
		if err == nil {
			err = batch.CheckHashable(arrowrows.Arrow(d.Schema()), []int{at})
		}
		if err == nil && slices.Contains(names[:i], name) {
			err = fmt.Errorf("key %q is named twice", name)
		}
		if err != nil {
			b.Errorf("%s: the %s dataset: %w", op, side, err)
			ok = false
		}
		cols[i] = at
	}
	return cols, ok
}

// incomparable returns why columns of two types cannot be compared, or "" if they can be
// compared. If it returns "", equal values have equal encodings.
func incomparable(left, right arrow.DataType) string {
	switch {
	case keyFamily(left) == keyFamily(right):
		return ""
	case arrow.IsInteger(left.ID()) && arrow.IsInteger(right.ID()):
		if narrowUnsigned(left) || narrowUnsigned(right) {
			return ""
		}
		return "some values of either are none of the other; convert one of them by WithColumn"
	}
	return "they are not compared; convert one of them by WithColumn"
}

// keyFamily returns the name of the family of t: a group of types that can be compared with
// each other.
func keyFamily(t arrow.DataType) string {
	switch {
	case arrow.IsUnsignedInteger(t.ID()):
		return "unsigned"
	case arrow.IsInteger(t.ID()):
		return "integer"
	case arrow.IsFloating(t.ID()):
		return "float"
	}
	return batch.TypeName(t)
}

// narrowUnsigned reports whether t is an unsigned type whose values all fit in an int64.
func narrowUnsigned(t arrow.DataType) bool {
	return arrow.IsUnsignedInteger(t.ID()) && t.ID() != arrow.UINT64
}

// joinBuilder returns the builder of two datasets, and whether both are usable. One of them may
// be nil; joinBuilder then records a misuse.
func joinBuilder(op string, left, right *engine.Dataset) (*engine.Builder, bool) {
	b := builderOf(op, left, right)
	switch {
	case left == nil:
		b.Errorf("%s: the left dataset is nil", op)
	case right == nil:
		b.Errorf("%s: the right dataset is nil", op)
	}
	return b, usable(left) && usable(right)
}

// hashPort returns an input that sends every row to the shard that a hash of the row's key
// chooses. Partners are sent to the same shard, as the hash does not depend on the widths of
// integers and floats.
func hashPort(d *engine.Dataset, columns []int) engine.Port {
	keys := make([]string, len(columns))
	for i, c := range columns {
		keys[i] = arrowrows.Arrow(d.Schema()).Field(c).Name
	}
	return engine.Port{From: d, Partitioner: engine.Hash, Keys: keys}
}

// joinKeyReader encodes the keys of the rows of a batch. A row has no key if one of its key
// columns is null.
type joinKeyReader struct {
	columns []int
	grouped bool // nulls are ordinary values of keys, as in GroupBy, so every row has a key
	keys    batch.Keys
	rows    arrow.Record // the current batch; borrowed
	nulls   bool         // the batch may have rows without a key
	encoded []byte
	listed  []int32
}

// reset sets the batch that the reader reads. The reader borrows rows until the next call of
// reset.
func (k *joinKeyReader) reset(rows arrow.Record) error {
	k.rows, k.nulls = rows, false
	for _, c := range k.columns {
		k.nulls = k.nulls || !k.grouped && rows.Column(c).NullN() > 0
	}
	return k.keys.Reset(rows, k.columns)
}

// null reports whether the given row has no key.
func (k *joinKeyReader) null(row int) bool {
	if !k.nulls {
		return false
	}
	for _, c := range k.columns {
		if k.rows.Column(c).IsNull(row) {
			return true
		}
	}
	return false
}

// key returns the encoding of a row's key, valid until the next call.
func (k *joinKeyReader) key(row int) []byte {
	k.encoded = k.keys.Append(k.encoded[:0], row)
	return k.encoded
}

// indices returns the indices of the batch's rows. It includes rows without a key only if
// withNulls is true. The result is valid until the next call.
func (k *joinKeyReader) indices(withNulls bool) []int32 {
	k.listed = k.listed[:0]
	for i := range int(k.rows.NumRows()) {
		if withNulls || !k.null(i) {
			k.listed = append(k.listed, int32(i))
		}
	}
	return k.listed
}
