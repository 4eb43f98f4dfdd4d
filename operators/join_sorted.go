package operators

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// keySorter sorts the rows of one side of a shard by a hash of their keys, and then by the
// keys, so that rows with equal keys are adjacent. It sorts in memory, or on disk if the memory
// does not suffice. Rows with equal keys keep their order. The sorters of both sides sort keys
// in the same order, whatever the types of the key columns are.
type keySorter struct {
	context *engine.Context
	columns int // number of columns of the rows; two columns follow: the encoded key and the row's index
	sorter  *rowSorter
	encoded []byte
	indices []int64
}

// newKeySorter returns an empty sorter for rows with the given schema.
func newKeySorter(c *engine.Context, schema *arrow.Schema) *keySorter {
	fields := schema.Fields()
	n := len(fields)
	fields = append(fields, arrow.Field{Name: freeName(fields, "key"), Type: arrow.BinaryTypes.Binary})
	fields = append(fields, arrow.Field{Name: freeName(fields, "index"), Type: arrow.PrimitiveTypes.Int64})
	return &keySorter{context: c, columns: n, sorter: newRowSorter(c, arrow.NewSchema(fields, nil), []batch.SortKey{{Column: n}})}
}

// schema returns the schema of the sorted rows.
func (s *keySorter) schema() *arrow.Schema { return s.sorter.schema }

// add adds the rows at the given indices of a borrowed batch. keys must have been reset to this
// batch. first is the index of the batch's first row within the shard. Rows with a null in
// their key get an empty key, which no other rows have, and are sorted first.
func (s *keySorter) add(keys *joinKeyReader, rows arrow.Record, indices []int32, first int64) error {
	if len(indices) == 0 {
		return nil
	}
	bld := array.NewBinaryBuilder(s.context.Allocator, arrow.BinaryTypes.Binary)
	defer bld.Release()
	s.indices = s.indices[:0]
	for _, row := range indices {
		s.indices = append(s.indices, first+int64(row))
		if s.encoded = s.encoded[:0]; !keys.null(int(row)) {
			// With the hash as a prefix, keys differ in their first bytes, which makes sorting
			// faster. Without it, the first bytes of keys are often equal.
			key := keys.key(int(row))
			s.encoded = append(binary.BigEndian.AppendUint64(s.encoded, xxh3.Hash(key)), key...)
		}
		bld.Append(s.encoded)
	}
	column := bld.NewArray()
	defer column.Release()
	return passRows(s.context, rows, indices, func(part arrow.Record) error {
		return s.push(part, column, s.indices)
	})
}

// push adds rows with additional columns of their keys and indices. All arguments are borrowed.
func (s *keySorter) push(rows arrow.Record, keys arrow.Array, indices []int64) error {
	numbers := int64Column(s.context, indices)
	defer numbers.Release()
	cols := append(rows.Columns()[:s.columns:s.columns], keys, numbers)
	rec := array.NewRecord(s.schema(), cols, rows.NumRows())
	defer rec.Release()
	return s.sorter.add(rec)
}

func (s *keySorter) close() error { return s.sorter.close() }

// errStopped is the error that a callback returns to end an iteration early.
var errStopped = errors.New("no more rows are wanted")

// keyCursor iterates over the rows of a keySorter.
type keyCursor struct {
	next func() (arrow.Record, error, bool)
	stop func()
	rows arrow.Record // current batch, borrowed until the next call of next; nil after the last row
	keys *array.Binary
	row  int
}

// cursor returns a cursor at the first row. The caller must call the cursor's method stop.
func (s *keySorter) cursor() (*keyCursor, error) {
	k := &keyCursor{}
	k.next, k.stop = iter.Pull2(func(yield func(arrow.Record, error) bool) {
		err := s.sorter.each(func(rows arrow.Record) error {
			if !yield(rows, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	})
	return k, k.load(s.columns)
}

// load moves the cursor to the next batch. column is the index of the column of keys.
func (k *keyCursor) load(column int) error {
	rows, err, ok := k.next()
	if err != nil || !ok {
		k.rows, k.keys = nil, nil
		return err
	}
	k.rows, k.keys, k.row = rows, rows.Column(column).(*array.Binary), 0
	return nil
}

// take appends the rows with the given key to the spool to, and moves the cursor past them.
func (k *keyCursor) take(key []byte, column int, to *rowSpool) error {
	for k.rows != nil {
		from, n := k.row, int(k.rows.NumRows())
		for k.row < n && bytes.Equal(k.keys.Value(k.row), key) {
			k.row++
		}
		if k.row > from {
			if err := to.add(k.rows, from, k.row); err != nil {
				return err
			}
		}
		if k.row < n {
			return nil
		}
		if err := k.load(column); err != nil {
			return err
		}
	}
	return nil
}

// mergeKeys iterates over the keys of two sides, in the order of the sorters, which are empty
// afterwards. It calls f for each key, with the rows of both sides that have this key; one of
// the sides may have none. f borrows the rows and the key for the call. most has the meaning of
// joinSpec.most.
func mergeKeys(left, right *keySorter, most int, f func(key []byte, left, right *rowSpool) error) (err error) {
	l, err := left.cursor()
	defer l.stop()
	if err != nil {
		return err
	}
	r, err := right.cursor()
	defer r.stop()
	if err != nil {
		return err
	}
	lefts, rights := newRowSpool(left.context, left.schema(), most), newRowSpool(right.context, right.schema(), most)
	defer func() {
		for _, s := range []*rowSpool{lefts, rights} {
			if closed := s.clear(); err == nil {
				err = closed
			}
		}
	}()
	var key []byte
	for l.rows != nil || r.rows != nil {
		key = append(key[:0], least(l, r)...)
		if err := l.take(key, left.columns, lefts); err != nil {
			return err
		}
		if err := r.take(key, right.columns, rights); err != nil {
			return err
		}
		if err := f(key, lefts, rights); err != nil {
			return err
		}
		if err := errors.Join(lefts.clear(), rights.clear()); err != nil {
			return err
		}
	}
	return nil
}

// least returns the smaller of the keys at two cursors. One of the cursors may have no more
// rows.
func least(l, r *keyCursor) []byte {
	if r.rows == nil {
		return l.keys.Value(l.row)
	}
	right := r.keys.Value(r.row)
	if l.rows != nil {
		if left := l.keys.Value(l.row); bytes.Compare(left, right) <= 0 {
			return left
		}
	}
	return right
}
