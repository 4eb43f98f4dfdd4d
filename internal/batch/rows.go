package batch

import (
	"fmt"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Take returns a new batch with the rows of rec that indices list, in that order. A row may be
// listed any number of times. The result shares no memory with rec.
func Take(mem memory.Allocator, rec arrow.Record, indices []int32) (arrow.Record, error) {
	rows := rec.NumRows()
	for k, i := range indices {
		if i < 0 || int64(i) >= rows {
			return nil, fmt.Errorf("take: row %d (index %d) is outside a batch of %d rows", i, k, rows)
		}
	}
	return build(mem, mem, rec.Schema(), []arrow.Record{rec}, len(indices), "take",
		func(s *sink, from []source) { s.measureTake(&from[0], indices) },
		func(s *sink, from []source) { s.putTake(&from[0], indices) })
}

// Pick selects rows of one of several batches.
type Pick struct {
	Batch int
	Rows  []int32
}

// Gather returns a new batch with the rows that picks select, in that order. There must be at
// least one batch, and all must have the same schema. The result equals the result of [Take]
// after [Concat], but Gather does not make the copy that Concat makes.
func Gather(mem memory.Allocator, recs []arrow.Record, picks []Pick) (arrow.Record, error) {
	schema, err := schemaOf(recs, "gather")
	if err != nil {
		return nil, err
	}
	n := 0
	for _, p := range picks {
		if p.Batch < 0 || p.Batch >= len(recs) {
			return nil, fmt.Errorf("gather: batch %d is not among %d batches", p.Batch, len(recs))
		}
		for _, i := range p.Rows {
			if rows := recs[p.Batch].NumRows(); i < 0 || int64(i) >= rows {
				return nil, fmt.Errorf("gather: row %d is outside batch %d of %d rows", i, p.Batch, rows)
			}
		}
		n += len(p.Rows)
	}
	each := func(step func(s *sink, from *source, rows []int32)) func(*sink, []source) {
		return func(s *sink, from []source) {
			for _, p := range picks {
				step(s, &from[p.Batch], p.Rows)
			}
		}
	}
	return build(mem, mem, schema, recs, n, "gather", each((*sink).measureTake), each((*sink).putTake))
}

// schemaOf returns the common schema of the batches, or an error if their schemas differ.
func schemaOf(recs []arrow.Record, what string) (*arrow.Schema, error) {
	if len(recs) == 0 {
		return nil, fmt.Errorf("%s: no batch given, so no schema is known", what)
	}
	schema := recs[0].Schema()
	for i, r := range recs {
		if r.Schema() != schema && !r.Schema().Equal(schema) {
			return nil, fmt.Errorf("%s: batch %d has columns (%s), batch 0 has (%s)", what, i, describe(r.Schema()), describe(schema))
		}
	}
	return schema, nil
}

// Concat returns one new batch with the rows of all batches in order. There must be at least
// one batch, and all must have the same schema. Each buffer is allocated once, with its final
// size.
func Concat(mem memory.Allocator, recs []arrow.Record) (arrow.Record, error) {
	return ConcatApart(mem, mem, recs)
}

// ConcatApart is Concat with a separate allocator for the offsets of text, bytes and lists.
func ConcatApart(mem, offsets memory.Allocator, recs []arrow.Record) (arrow.Record, error) {
	schema, err := schemaOf(recs, "concat")
	if err != nil {
		return nil, err
	}
	rows := int64(0)
	for _, r := range recs {
		rows += r.NumRows()
	}
	if rows > maxRows {
		return nil, fmt.Errorf("concat: %d rows exceed the %d that one batch can hold", rows, maxRows)
	}
	each := func(step func(s *sink, from *source, start, n int)) func(*sink, []source) {
		return func(s *sink, from []source) {
			for i := range from {
				step(s, &from[i], 0, from[i].n)
			}
		}
	}
	return build(mem, offsets, schema, recs, int(rows), "concat", each((*sink).measure), each((*sink).put))
}

// build returns a batch of the given number of rows. For each column, it opens the sources in
// recs, calls measure, allocates the buffers, and calls put.
func build(mem, offsets memory.Allocator, schema *arrow.Schema, recs []arrow.Record, rows int, what string,
	measure, put func(*sink, []source)) (arrow.Record, error) {
	cols := make([]arrow.Array, schema.NumFields())
	from := make([]source, len(recs))
	var out sink
	done := false
	defer func() { // allocators panic if they have no memory left
		if !done {
			out.release()
			releaseAll(cols)
		}
	}()
	for c := range cols {
		f := schema.Field(c)
		var err error
		for i, r := range recs {
			if from[i], err = newSource(r.Column(c).Data()); err != nil {
				break
			}
		}
		if err == nil {
			out = newSink(f.Type, &from[0])
			measure(&out, from)
			err = out.check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: column %q: %w", what, f.Name, err)
		}
		out.alloc(mem, offsets)
		put(&out, from)
		cols[c] = ownedArray(out.finish())
		out = sink{}
	}
	done = true
	return ownedRecord(schema, cols, rows), nil
}

// Consecutive reports whether each index is one more than the index before it.
func Consecutive(indices []int32) bool {
	for i, at := range indices {
		if at != indices[0]+int32(i) {
			return false
		}
	}
	return true
}

// Slice returns rows start to end-1 of rec. The result shares the memory of rec. Slice computes
// the null counts, because Arrow would otherwise compute them lazily and write them to data
// that subtasks share.
func Slice(rec arrow.Record, start, end int) (arrow.Record, error) {
	if start < 0 || end < start || int64(end) > rec.NumRows() {
		return nil, fmt.Errorf("slice: rows %d to %d are not within a batch of %d rows", start, end, rec.NumRows())
	}
	return slice(rec, start, end), nil
}

func slice(rec arrow.Record, start, end int) arrow.Record {
	if start == 0 && int64(end) == rec.NumRows() {
		rec.Retain()
		return rec
	}
	cols := make([]arrow.Array, rec.NumCols())
	for i := range cols {
		cols[i] = sliceArray(rec.Column(i), start, end)
	}
	return ownedRecord(rec.Schema(), cols, end-start)
}

func sliceArray(arr arrow.Array, start, end int) arrow.Array {
	d := array.NewSliceData(arr.Data(), int64(start), int64(end)).(*array.Data)
	if d.NullN() != 0 {
		d.SetNullN(countNulls(d))
	}
	return ownedArray(d)
}

func countNulls(d arrow.ArrayData) int {
	if bits := validBits(d); bits != nil {
		return d.Len() - bitutil.CountSetBits(bits, d.Offset(), d.Len())
	}
	return 0
}

// Rechunk yields the rows of rec, in order, as batches of at most n rows; n must be positive.
// The batches share the memory of rec. The loop body owns each of them. If rec has no rows,
// Rechunk yields nothing.
func Rechunk(rec arrow.Record, n int) iter.Seq[arrow.Record] {
	if n < 1 {
		panic(fmt.Sprintf("batch: rechunk to %d rows", n))
	}
	return func(yield func(arrow.Record) bool) {
		rows := int(rec.NumRows())
		for start := 0; start < rows; start += n {
			if !yield(slice(rec, start, min(start+n, rows))) {
				return
			}
		}
	}
}

// Select returns a batch with the given columns of rec, in that order. It shares the memory of
// rec.
func Select(rec arrow.Record, cols []int) (arrow.Record, error) {
	fields, arrs := make([]arrow.Field, len(cols)), make([]arrow.Array, len(cols))
	for i, c := range cols {
		if c < 0 || int64(c) >= rec.NumCols() {
			return nil, fmt.Errorf("select: no column %d in a batch of %d columns", c, rec.NumCols())
		}
		fields[i], arrs[i] = rec.Schema().Field(c), rec.Column(c)
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), arrs, rec.NumRows()), nil
}

// WithColumn returns rec with arr, which is borrowed, as the column field. If rec has one
// column with the name of field, arr replaces it. If rec has no such column, arr becomes the
// last column. Several such columns are an error. arr must have one value per row, and no null
// unless field is nullable.
func WithColumn(rec arrow.Record, field arrow.Field, arr arrow.Array) (arrow.Record, error) {
	switch {
	case field.Type == nil || !arrow.TypeEqual(field.Type, arr.DataType(), arrow.CheckMetadata()):
		return nil, fmt.Errorf("column %q: declared %s, but the values are %s", field.Name, TypeName(field.Type), TypeName(arr.DataType()))
	case int64(arr.Len()) != rec.NumRows():
		return nil, fmt.Errorf("column %q: %d values for %d rows", field.Name, arr.Len(), rec.NumRows())
	case !field.Nullable && countNulls(arr.Data()) > 0:
		return nil, fmt.Errorf("column %q: %d nulls in a column that is not nullable", field.Name, countNulls(arr.Data()))
	}
	fields := rec.Schema().Fields()
	cols := append(make([]arrow.Array, 0, len(fields)+1), rec.Columns()...)
	switch found := rec.Schema().FieldIndices(field.Name); len(found) {
	case 0:
		fields, cols = append(fields, field), append(cols, arr)
	case 1:
		fields[found[0]], cols[found[0]] = field, arr
	default:
		return nil, fmt.Errorf("%d columns are named %q; rename them first", len(found), field.Name)
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), cols, rec.NumRows()), nil
}

// Empty returns a batch of no rows.
func Empty(schema *arrow.Schema) arrow.Record {
	cols := make([]arrow.Array, schema.NumFields())
	for i := range cols {
		cols[i] = ownedArray(emptyData(schema.Field(i).Type))
	}
	return ownedRecord(schema, cols, 0)
}

func emptyData(dt arrow.DataType) arrow.ArrayData {
	buffers := make([]*memory.Buffer, len(dt.Layout().Buffers))
	if dt.ID() == arrow.LIST || dt.ID() == arrow.STRING || dt.ID() == arrow.BINARY {
		buffers[1] = memory.NewBufferBytes(make([]byte, arrow.Int32SizeBytes))
	}
	var children []arrow.ArrayData
	if nested, ok := dt.(arrow.NestedType); ok {
		for _, f := range nested.Fields() {
			children = append(children, emptyData(f.Type))
		}
	}
	return ownedData(dt, 0, buffers, children, 0)
}

// Size returns how many bytes of buffers the rows of rec use. For a slice of a batch it counts
// only the rows of the slice. Memory budgets account for this size, so batches that share
// buffers are each counted by their own rows.
func Size(rec arrow.Record) int64 {
	var n int64
	for i := range int(rec.NumCols()) {
		d := rec.Column(i).Data()
		n += sizeOf(d, d.Offset(), d.Len())
	}
	return n
}

// sizeOf returns the size of n rows of d from row start on. start is the index in the buffers,
// so it includes the offset of d.
func sizeOf(d arrow.ArrayData, start, n int) int64 {
	if n == 0 {
		return 0
	}
	var size int64
	if validBits(d) != nil {
		size += bitutil.BytesForBits(int64(n))
	}
	child := func(i, start, n int) int64 {
		c := d.Children()[i]
		return sizeOf(c, c.Offset()+start, n)
	}
	switch dt := d.DataType().(type) {
	case *arrow.BooleanType:
		return size + bitutil.BytesForBits(int64(n))
	case *arrow.StringType, *arrow.BinaryType:
		offs := castBytes[int32](bufferBytes(d, 1))
		return size + int64((n+1)*arrow.Int32SizeBytes) + int64(offs[start+n]-offs[start])
	case *arrow.ListType:
		offs := castBytes[int32](bufferBytes(d, 1))
		return size + int64((n+1)*arrow.Int32SizeBytes) + child(0, int(offs[start]), int(offs[start+n]-offs[start]))
	case *arrow.FixedSizeListType:
		return size + child(0, start*int(dt.Len()), n*int(dt.Len()))
	case *arrow.StructType:
		for i := range d.Children() {
			size += child(i, start, n)
		}
		return size
	default:
		if w := fixedWidth(dt); w > 0 {
			return size + int64(n)*int64(w)
		}
		for _, b := range d.Buffers() {
			if b != nil {
				size += int64(b.Len())
			}
		}
		return size
	}
}
