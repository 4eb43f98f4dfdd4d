package operators

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// ArrowOptions determines what ReadArrow reads. With the zero value, ReadArrow reads all
// columns.
type ArrowOptions struct {
	// Columns names the columns to read, in this order; nil means all.
	Columns []string
	// Some types of Arrow cannot be read. If Columns is nil and LeaveOut is set, columns of
	// these types are left out, and LeaveOut is called for each of them with the reason.
	// Otherwise a column of such a type is an error, unless Columns does not name it.
	LeaveOut func(column, problem string)
	// Index, if set, is called for each column to read that is an index of a pandas data frame,
	// according to the files' metadata.
	Index func(column string)
	// FS, if set, is the file system that holds the files, such as one embedded in
	// the program.
	FS fs.FS
}

// ReadArrow reads Arrow IPC files, in the file format (also known as Feather version 2) or the
// stream format: a file, the files of a directory, or the files that match a glob. Record
// batches may be compressed by LZ4 or zstd. Columns must have types that rows can have.
// Dictionary-encoded values are read as plain values, and large_utf8 and large_binary as utf8
// and binary. See ReadRowFiles for how files are checked and rows are divided into shards.
func ReadArrow(b *engine.Builder, path string, o ArrowOptions) *engine.Dataset {
	return ReadRowFiles(b, o.FS, path, RowFormat{Op: "ReadArrow", Columns: o.Columns, LeaveOut: o.LeaveOut, Index: o.Index, Open: openArrow})
}

// arrowFile is an open file in either format.
type arrowFile struct {
	*arrowIndex
	r      io.ReaderAt
	schema *arrow.Schema
	// stored is the encoded schema of the batches as they are stored, with indices instead of
	// dictionary values. A stream of batches begins with it.
	stored []byte
	// fields has the columns as they are stored. omit marks the columns whose types rows cannot
	// have; stored does not include these columns. kept maps indices of fields to
	// columns of stored.
	fields []arrow.Field
	omit   []bool
	kept   []int
	// lookups has, for each column, the type of the values of the column's dictionary, or nil
	// if the column has no dictionary.
	lookups []arrow.DataType
}

func openArrow(r io.ReaderAt, size int64) (RowFile, error) {
	x, err := indexArrow(r, size)
	if err != nil {
		return nil, err
	}
	told := x.declared
	if len(x.ids) != told.NumFields() {
		return nil, fmt.Errorf("its schema is damaged: it has %d columns in one place and %d in another", told.NumFields(), len(x.ids))
	}
	fields, stored, lookups := told.Fields(), told.Fields(), make([]arrow.DataType, told.NumFields())
	for i, f := range fields {
		if d, ok := f.Type.(*arrow.DictionaryType); ok {
			stored[i].Type, f.Type = d.IndexType, d.ValueType
			lookups[i] = d.ValueType
		}
		fields[i].Type = batch.PlainType(f.Type)
	}
	f := &arrowFile{arrowIndex: x, r: r, schema: arrow.NewSchema(fields, pandasMetadata(told)), fields: stored, lookups: lookups,
		omit: make([]bool, len(fields)), kept: make([]int, len(fields))}
	var rest []arrow.Field
	for i, field := range fields {
		f.kept[i] = len(rest)
		if f.omit[i] = !batch.Supported(field.Type); !f.omit[i] {
			rest = append(rest, stored[i])
		}
	}
	if f.stored, err = batch.SchemaMessage(arrow.NewSchema(rest, nil)); err != nil {
		return nil, err
	}
	stream, err := f.stream(0, memory.NewGoAllocator())
	if err != nil {
		return nil, err
	}
	stream.Release()
	return f, nil
}

// endMark is the end-of-stream mark.
var endMark = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// stream returns a reader of all batches with rows, from the batch of the given number on. The
// reader reads a stream that consists of the schema and these batches.
func (f *arrowFile) stream(first int, mem memory.Allocator) (*batch.StreamReader, error) {
	parts := []io.Reader{bytes.NewReader(f.stored)}
	for _, span := range f.spans {
		if first == len(f.begin) || span[1] <= f.begin[first] {
			continue
		}
		begin := max(span[0], f.begin[first])
		parts = append(parts, &wholeReader{io.NewSectionReader(f.r, begin, span[1]-begin), span[1] - begin})
	}
	return batch.NewStreamReaderWithout(io.MultiReader(append(parts, bytes.NewReader(endMark))...), mem, f.fields, f.omit)
}

// wholeReader reads exactly left bytes from r. It returns an error if r ends earlier, so that a
// reader of several sections does not take bytes of the next section for missing bytes.
type wholeReader struct {
	r    io.Reader
	left int64
}

func (w *wholeReader) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	w.left -= int64(n)
	if err == io.EOF && w.left > 0 {
		err = fmt.Errorf("its last %d bytes are gone: %w", w.left, io.ErrUnexpectedEOF)
	}
	return n, err
}

func (f *arrowFile) Schema() engine.Schema { return arrowrows.Schema(f.schema) }

func (f *arrowFile) NumRows() int64 { return f.rows }

func (f *arrowFile) Close() error { return nil }

func (f *arrowFile) Rows(row int64, columns []int, mem columnar.Allocator) (RowCursor, error) {
	// k is the index of the last batch that begins at or before the row.
	k := sort.Search(len(f.first), func(k int) bool { return f.first[k] > row }) - 1
	from, skip := len(f.begin), int64(0)
	if k >= 0 {
		from, skip = k, row-f.first[k]
	}
	stream, err := f.stream(from, mem)
	if err != nil {
		return nil, err
	}
	at := make([]int, len(columns))
	for i, column := range columns {
		at[i] = f.kept[column]
	}
	return &arrowCursor{file: f, mem: mem, stream: stream, columns: columns, at: at, batch: from - 1, skip: skip, lookups: make([]dictionary, len(columns))}, nil
}

// leastLookups is the smallest number of rows for which dictionary values are looked up at
// once. The number is small, as all rows may refer to the same large value, which is copied for
// each of them.
const leastLookups = 1024

// arrowCursor is a RowCursor that reads one batch after another.
type arrowCursor struct {
	file    *arrowFile
	mem     memory.Allocator
	stream  *batch.StreamReader
	columns []int
	at      []int        // indices of the columns in the batches of the stream
	batch   int          // index of the current batch
	rows    arrow.Record // the current batch as stored, owned; nil if there is none
	skip    int64        // number of rows to skip in the current batch, as they have been read or precede the first row
	lookups []dictionary // the dictionaries of the columns
}

func (c *arrowCursor) Next(want int) (engine.Batch, error) {
	rows, err := c.next(want)
	return arrowrows.Batch(rows), err
}

// next implements Next, with Arrow records.
func (c *arrowCursor) next(want int) (arrow.Record, error) {
	for c.rows == nil || c.skip >= c.rows.NumRows() {
		if c.rows != nil {
			c.skip -= c.rows.NumRows()
			c.rows.Release()
			c.rows = nil
		}
		rows, err := c.stream.Read()
		if err != nil {
			return nil, err
		}
		picked, err := batch.Select(rows, c.at)
		rows.Release()
		if err != nil {
			return nil, err
		}
		c.rows = picked
		c.batch++
	}
	to := c.rows.NumRows()
	if c.hasDictionaries() {
		to = min(to, c.skip+int64(max(want, leastLookups)))
	}
	part, err := batch.Slice(c.rows, int(c.skip), int(to))
	if err != nil {
		return nil, err
	}
	defer part.Release()
	c.skip = to
	return c.values(part)
}

func (c *arrowCursor) hasDictionaries() bool {
	return slices.ContainsFunc(c.columns, c.file.hasDictionary)
}

// values returns rows with their indices replaced by dictionary values. The caller owns the
// result.
func (c *arrowCursor) values(rows arrow.Record) (arrow.Record, error) {
	cols, fields := make([]arrow.Array, 0, len(c.columns)), rows.Schema().Fields()
	defer func() {
		for _, col := range cols {
			col.Release()
		}
	}()
	for i, column := range c.columns {
		col := rows.Column(i)
		if !c.file.hasDictionary(column) {
			col.Retain()
			cols = append(cols, col)
			continue
		}
		fields[i].Type = c.file.schema.Field(column).Type
		values, err := c.lookups[i].of(c.file, column, c.batch)
		if err == nil {
			col, err = batch.Lookup(c.mem, col, values)
		}
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", fields[i].Name, err)
		}
		cols = append(cols, col)
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), cols, rows.NumRows()), nil
}

func (c *arrowCursor) Close() error {
	if c.rows != nil {
		c.rows.Release()
	}
	c.stream.Release()
	return nil
}
