package columnar

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Allocator allocates memory that the run accounts for; see engine.Context.
type Allocator interface {
	Allocate(size int) []byte
	Reallocate(size int, b []byte) []byte
	Free(b []byte)
}

// Batch holds rows of one schema, stored by column. It is immutable. The zero value stands for
// no batch. Copies of a Batch value refer to the same batch. Retain and Release count its
// references, and several goroutines may call them at the same time.
type Batch batch.Handle

func (b Batch) record() arrow.Record { return batch.Handle(b).Record() }

// IsZero reports whether b is the zero value, which stands for no batch.
func (b Batch) IsZero() bool { return b.record() == nil }

// Len returns the number of rows.
func (b Batch) Len() int {
	if b.IsZero() {
		return 0
	}
	return int(b.record().NumRows())
}

// Schema returns the schema of the batch, or the zero Schema if there is no batch.
func (b Batch) Schema() Schema {
	if b.IsZero() {
		return Schema{}
	}
	return Schema(batch.HandleOfSchema(b.record().Schema()))
}

// Retain adds a reference. It is called to keep a borrowed batch.
func (b Batch) Retain() {
	if !b.IsZero() {
		b.record().Retain()
	}
}

// Release drops a reference. Dropping the last reference frees the memory.
func (b Batch) Release() {
	if !b.IsZero() {
		b.record().Release()
	}
}

// Slice returns rows lo to hi-1 as a new batch, owned by the caller. The new batch refers to
// the memory of b.
func (b Batch) Slice(lo, hi int) (Batch, error) {
	if b.IsZero() || lo < 0 || hi < lo || hi > b.Len() {
		return Batch{}, fmt.Errorf("columnar: Slice: rows %d to %d of a batch of %d", lo, hi, b.Len())
	}
	rec := b.record()
	if batch.Released(rec) {
		return Batch{}, fmt.Errorf("columnar: Slice: %w", batch.ErrReleased)
	}
	if lo == 0 && hi == b.Len() {
		return Batch(batch.HandleOf(array.NewRecord(rec.Schema(), rec.Columns(), rec.NumRows()))), nil
	}
	rec, err := batch.Slice(rec, lo, hi)
	if err != nil {
		return Batch{}, fmt.Errorf("columnar: Slice: %w", err)
	}
	return Batch(batch.HandleOf(rec)), nil
}

// Values holds the values of a column of any type. Values that Batch.Values returns are valid
// as long as the batch is valid. NewBatch puts Values into another batch without a copy. Values
// that NewValues returns are owned by the caller.
type Values batch.ArrayHandle

func (v Values) array() arrow.Array { return batch.ArrayHandle(v).Array() }

// IsZero reports whether v is the zero value. The values of a column without rows are not the
// zero value.
func (v Values) IsZero() bool { return v.array() == nil }

// Len returns the number of values.
func (v Values) Len() int {
	if v.IsZero() {
		return 0
	}
	return v.array().Len()
}

// Release releases values that NewValues returned. Values borrowed from a batch must not be
// released.
func (v Values) Release() {
	if !v.IsZero() {
		v.array().Release()
	}
}

// Values returns the values of a column, borrowed from the batch.
func (b Batch) Values(column string) (Values, error) {
	arr, err := b.find(column)
	if err != nil {
		return Values{}, err
	}
	return Values(batch.HandleOfArray(arr)), nil
}

// find returns a column by its name.
func (b Batch) find(column string) (arrow.Array, error) {
	if b.IsZero() {
		return nil, fmt.Errorf("column %q: there is no batch", column)
	}
	i, err := batch.FindColumn(b.record().Schema(), column)
	if err != nil {
		return nil, err
	}
	if batch.Released(b.record()) {
		return nil, fmt.Errorf("column %q: the batch is of no use: %w", column, batch.ErrReleased)
	}
	return b.record().Column(i), nil
}

// Format returns the value at the given column and row as text, as Print and CSV files show it;
// a missing value is "null". It panics if there is no such column or row, or if the batch was
// released.
func (b Batch) Format(column, row int) string {
	switch schema := b.Schema(); {
	case b.IsZero():
		panic(fmt.Errorf("columnar: Format: column %d, row %d: there is no batch", column, row))
	case column < 0 || column >= schema.Len() || row < 0 || row >= b.Len():
		panic(fmt.Errorf("columnar: Format: column %d, row %d of a batch of %d columns and %d rows", column, row, schema.Len(), b.Len()))
	case batch.Released(b.record()):
		panic(fmt.Errorf("columnar: Format: column %d, row %d: %w", column, row, batch.ErrReleased))
	}
	return batch.FormatValue(b.record().Column(column), row)
}
