package batch

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// RecordBuilder holds one Arrow builder per column of a schema of supported types, for code
// that fills columns value by value (see ParseInto). It replaces array.RecordBuilder, which
// always declares the items of fixed-size lists as nullable, and panics if the schema declares
// them as non-null.
type RecordBuilder struct {
	schema *arrow.Schema
	fields []array.Builder
}

// NewRecordBuilder returns a builder for batches of the schema. The caller must call Release.
func NewRecordBuilder(mem memory.Allocator, schema *arrow.Schema) (*RecordBuilder, error) {
	for i := range schema.NumFields() {
		if f := schema.Field(i); kindOf(f.Type) == kindInvalid {
			return nil, fmt.Errorf("column %q: type %s is not supported", f.Name, TypeName(f.Type))
		}
	}
	b := &RecordBuilder{schema: schema, fields: make([]array.Builder, schema.NumFields())}
	for i := range b.fields {
		b.fields[i] = array.NewBuilder(mem, schema.Field(i).Type)
	}
	return b, nil
}

// Schema returns the schema of the batches.
func (b *RecordBuilder) Schema() *arrow.Schema { return b.schema }

// Field returns the builder of column i, borrowed.
func (b *RecordBuilder) Field(i int) array.Builder { return b.fields[i] }

// Reserve makes room for n more rows in every column.
func (b *RecordBuilder) Reserve(n int) {
	for _, f := range b.fields {
		f.Reserve(n)
	}
}

// NewRecord returns the appended values as a batch, owned by the caller, and empties the
// builders. All columns must be of equal length, vectors must have the declared number of
// components, and columns that are not nullable must have no null. On error the appended values
// are discarded.
func (b *RecordBuilder) NewRecord() (arrow.Record, error) {
	cols, rows, err := b.newColumns()
	if err != nil {
		return nil, err
	}
	return ownedRecord(b.schema, cols, rows), nil
}

// NewColumns is NewRecord, but returns only the columns. The caller owns each of them.
func (b *RecordBuilder) NewColumns() ([]arrow.Array, error) {
	cols, _, err := b.newColumns()
	return cols, err
}

func (b *RecordBuilder) newColumns() (cols []arrow.Array, rows int, err error) {
	cols = make([]arrow.Array, len(b.fields))
	for i, f := range b.fields {
		arr := f.NewArray()
		cols[i] = ownedArray(retype(arr.Data(), b.schema.Field(i).Type))
		arr.Release()
		rows = cols[0].Len()
	}
	for i, c := range cols {
		f := b.schema.Field(i)
		err := validateColumn(f, c.Data())
		if c.Len() != rows {
			err = fmt.Errorf("%d values, but column %q has %d", c.Len(), b.schema.Field(0).Name, rows)
		}
		if err != nil {
			releaseAll(cols)
			return nil, 0, fmt.Errorf("column %q: %w", f.Name, err)
		}
	}
	return cols, rows, nil
}

// Release releases the memory of the builders.
func (b *RecordBuilder) Release() {
	for _, f := range b.fields {
		f.Release()
	}
	b.fields = nil
}

// AppendNull appends a null to a builder of a supported type. For a null vector it appends
// components that are not null, because vector types declare their components as non-null. The
// builder's method AppendNull would append null components.
func AppendNull(builder array.Builder) {
	b, ok := builder.(*array.FixedSizeListBuilder)
	if !ok {
		builder.AppendNull()
		return
	}
	b.Append(false)
	b.ValueBuilder().AppendEmptyValues(int(b.Type().(*arrow.FixedSizeListType).Len()))
}
