package operators

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
)

// readColumns describes the columns that a source emits. Columns that no operator reads are not
// read from the file. The emitted rows have zeros in these columns, so that the other columns
// keep their indices.
type readColumns struct {
	schema *arrow.Schema
	read   []int // indices in the schema of the columns that are read
	at     []int // indices of the same columns in the files

	zeros *memory.Buffer // for the columns that are not read; on the heap, never released
}

// newReadColumns returns the readColumns of a schema. at has the indices of the schema's
// columns in the files. needed marks the columns to read; nil means all.
func newReadColumns(schema *arrow.Schema, at []int, needed []bool) readColumns {
	r := readColumns{schema: schema, read: []int{}, at: []int{}}
	for i := range at {
		if needed == nil || needed[i] {
			r.read, r.at = append(r.read, i), append(r.at, at[i])
		}
	}
	return r
}

// complete returns rows with all columns of the schema. The argument, which is borrowed, has
// only the columns that were read.
func (r *readColumns) complete(rows arrow.Record) (arrow.Record, error) {
	if int(rows.NumCols()) != len(r.read) {
		return nil, fmt.Errorf("it gave %d columns where %d were asked for", rows.NumCols(), len(r.read))
	}
	cols := make([]arrow.Array, r.schema.NumFields())
	for k, i := range r.read {
		f, got := r.schema.Field(i), rows.Schema().Field(k)
		if got.Name != f.Name || !arrow.TypeEqual(got.Type, f.Type, arrow.CheckMetadata()) || got.Nullable && !f.Nullable {
			return nil, fmt.Errorf("its column %q is %s now, and was %s", f.Name, batch.TypeName(got.Type), batch.TypeName(f.Type))
		}
		cols[i] = rows.Column(k)
	}
	for i := range cols {
		if cols[i] == nil {
			data := r.zero(r.schema.Field(i).Type, int(rows.NumRows()))
			cols[i] = array.MakeFromData(data)
			data.Release()
			defer cols[i].Release()
		}
	}
	return array.NewRecord(r.schema, cols, rows.NumRows()), nil
}

// zero returns n zero or empty values of a type. The caller owns them.
func (r *readColumns) zero(t arrow.DataType, n int) arrow.ArrayData {
	var children []arrow.ArrayData
	buffers := []*memory.Buffer{nil}
	child := func(t arrow.DataType, n int) { children = append(children, r.zero(t, n)) }
	switch t := t.(type) {
	case arrow.BinaryDataType:
		buffers = append(buffers, r.buffer((n+1)*arrow.Int32SizeBytes), r.buffer(0))
	case *arrow.FixedSizeListType:
		child(t.Elem(), n*int(t.Len()))
	case *arrow.ListType:
		buffers = append(buffers, r.buffer((n+1)*arrow.Int32SizeBytes))
		child(t.Elem(), 0)
	case *arrow.StructType:
		for _, f := range t.Fields() {
			child(f.Type, n)
		}
	case arrow.FixedWidthDataType:
		buffers = append(buffers, r.buffer(int(bitutil.BytesForBits(int64(n)*int64(t.BitWidth())))))
	}
	data := array.NewData(t, n, buffers, children, 0, 0)
	for _, c := range children {
		c.Release()
	}
	return data
}

// buffer returns a buffer of at least the given number of zero bytes, which batches share.
func (r *readColumns) buffer(bytes int) *memory.Buffer {
	if r.zeros == nil || r.zeros.Len() < bytes {
		r.zeros = memory.NewBufferBytes(make([]byte, max(bytes, 64)))
	}
	return r.zeros
}
