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

// ArrowOptions says what to read of Arrow files. The zero value is everything.
type ArrowOptions struct {
	// Columns names the columns to read, in this order; nil means all.
	Columns []string
	// LeaveOut, if set, is called for each column whose type rows cannot have. The column is
	// then left out, unless Columns names it. Without LeaveOut such columns are an error.
	LeaveOut func(column, problem string)
	// Index, if set, is called for each column read that the files name as an index of pandas.
	Index func(column string)
	// FS, if set, is the file system that holds the files, such as one embedded in
	// the program.
	FS fs.FS
}

// ReadArrow reads files in the Arrow IPC format, in the file form (also known as Feather
// version 2) or the stream form: a file, the files of a directory, or those a glob names. Their
// bodies may be compressed, by LZ4 or zstd. Columns must be of types that rows can have.
// Dictionary-encoded values are read as plain values, and large_utf8 and large_binary as utf8
// and binary. Files are checked, and rows cut into shards, as ReadRowFiles says.
func ReadArrow(b *engine.Builder, path string, o ArrowOptions) *engine.Dataset {
	return ReadRowFiles(b, o.FS, path, RowFormat{Op: "ReadArrow", Columns: o.Columns, LeaveOut: o.LeaveOut, Index: o.Index, Open: openArrow})
}

// arrowFile is an open file of either form.
type arrowFile struct {
	*arrowIndex
	r      io.ReaderAt
	schema *arrow.Schema
	// stored is the beginning of a stream of the batches as they are stored, with indices
	// instead of dictionary values.
	stored []byte
	// fields are the columns as they are stored. omit marks those whose types rows cannot have;
	// stored is without them. kept are the indices of the other columns in stored.
	fields []arrow.Field
	omit   []bool
	kept   []int
	// lookups are the types of dictionary values, by column; nil for a column without a
	// dictionary.
	lookups []arrow.DataType
}

func openArrow(r io.ReaderAt, size int64) (RowFile, error) {
	x, err := indexArrow(r, size)
	if err != nil {
		return nil, err
	}
	told := x.declared
	if len(x.ids) != told.NumFields() {
		return nil, fmt.Errorf("its schema has %d columns or %d", told.NumFields(), len(x.ids))
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

// endMark ends a stream.
var endMark = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// stream reads the batches with rows from index from on. It presents them to the reader as a
// stream that begins with the schema.
func (f *arrowFile) stream(from int, mem memory.Allocator) (*batch.StreamReader, error) {
	parts := []io.Reader{bytes.NewReader(f.stored)}
	for _, span := range f.spans {
		if from == len(f.begin) || span[1] <= f.begin[from] {
			continue
		}
		begin := max(span[0], f.begin[from])
		parts = append(parts, &wholeReader{io.NewSectionReader(f.r, begin, span[1]-begin), span[1] - begin})
	}
	return batch.NewStreamReaderWithout(io.MultiReader(append(parts, bytes.NewReader(endMark))...), mem, f.fields, f.omit)
}

// wholeReader reads a section of left bytes, and fails if it ends early, so that bytes after it
// cannot replace missing ones.
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
	// The last batch that begins at or before the row.
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

// leastLookups is the least number of rows for which dictionary values are looked up at a time.
// It is small, as one large value in a file may be that of every row.
const leastLookups = 1024

// arrowCursor reads batch by batch.
type arrowCursor struct {
	file    *arrowFile
	mem     memory.Allocator
	stream  *batch.StreamReader
	columns []int
	at      []int        // indices of the columns in the batches of the stream
	batch   int          // index of the current batch
	rows    arrow.Record // of the current batch, as stored, owned; nil if none is left
	skip    int64        // rows of it that have been read
	lookups []dictionary // of each column
}

func (c *arrowCursor) Next(want int) (engine.Batch, error) {
	rows, err := c.next(want)
	return arrowrows.Batch(rows), err
}

// next is Next for records.
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

// values returns rows with dictionary values in place of indices, owned.
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
