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

// JoinKeys are pairs of columns, one of the left and one of the right dataset, in which two
// rows must be equal to be partners; see On.
type JoinKeys struct{ left, right []string }

// On makes rows partners if they are equal in the named columns, which both datasets have.
// Equal adds columns whose names differ:
//
//	operators.On("country").Equal("customer_id", "id")
//
// Values are equal as in GroupBy: integers by value whatever their width, -0 and +0, and all
// NaN. This is as in SQL, except that databases differ about NaN. Unlike in GroupBy, a null
// equals nothing, not even another null.
//
// Integers are compared with integers, float32 and float64 with each other, bools, text, bytes
// and dates with their own kind, timestamps with those of the same unit and time zone. An
// unsigned integer of 64 bits is not compared with signed ones, as either has values that the
// other does not have.
func On(columns ...string) JoinKeys {
	return JoinKeys{left: slices.Clone(columns), right: slices.Clone(columns)}
}

// Equal returns the keys with one more pair: a column of the left dataset and the column of the
// right one that must equal it. Each column may be named once.
func (k JoinKeys) Equal(left, right string) JoinKeys {
	return JoinKeys{left: append(slices.Clone(k.left), left), right: append(slices.Clone(k.right), right)}
}

// String returns what plans show, such as "country, customer_id = id".
func (k JoinKeys) String() string {
	parts := make([]string, len(k.left))
	for i, name := range k.left {
		if parts[i] = name; k.right[i] != name {
			parts[i] += " = " + k.right[i]
		}
	}
	return strings.Join(parts, ", ")
}

// joinColumns are the columns of the keys on either side, pair by pair.
type joinColumns struct{ left, right []int }

// check reports whether rows can be partners by the keys, and records what is wrong otherwise.
// Both datasets must be usable.
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

// sent returns the two datasets without the columns that a join does not need. It needs the
// keys, and the columns of readLeft and readRight; nil stands for all columns.
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

// sideColumns finds the key columns of one side.
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

// incomparable returns why values of two types are never partners, or "" if they can be. In
// that case equal values have equal encodings.
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

// keyFamily names the values that a type is compared with.
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

// narrowUnsigned reports whether int64 has every value of the unsigned type.
func narrowUnsigned(t arrow.DataType) bool {
	return arrow.IsUnsignedInteger(t.ID()) && t.ID() != arrow.UINT64
}

// joinBuilder returns the builder of two datasets, or of the one that is not nil, and whether
// both can be joined. It records the misuse if one is nil.
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

// hashPort returns an input that sends rows to the shard of their key. Partners have the same
// shard, as the hash ignores the widths of integers and floats.
func hashPort(d *engine.Dataset, columns []int) engine.Port {
	keys := make([]string, len(columns))
	for i, c := range columns {
		keys[i] = arrowrows.Arrow(d.Schema()).Field(c).Name
	}
	return engine.Port{From: d, Partitioner: engine.Hash, Keys: keys}
}

// joinKeyReader encodes the keys of a batch, and reports which rows have no key.
type joinKeyReader struct {
	columns []int
	grouped bool // nulls are values like others, as in groups
	keys    batch.Keys
	rows    arrow.Record // borrowed
	nulls   bool         // there may be rows without a key
	encoded []byte
	listed  []int32
}

// reset points the reader at a batch, which is borrowed until the next call.
func (k *joinKeyReader) reset(rows arrow.Record) error {
	k.rows, k.nulls = rows, false
	for _, c := range k.columns {
		k.nulls = k.nulls || !k.grouped && rows.Column(c).NullN() > 0
	}
	return k.keys.Reset(rows, k.columns)
}

// null reports whether a row matches nothing, as a column of its key is null.
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

// indices returns the rows of the batch, valid until the next call. Rows without a key are
// included only if withNulls is true.
func (k *joinKeyReader) indices(withNulls bool) []int32 {
	k.listed = k.listed[:0]
	for i := range int(k.rows.NumRows()) {
		if withNulls || !k.null(i) {
			k.listed = append(k.listed, int32(i))
		}
	}
	return k.listed
}
