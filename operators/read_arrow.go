package operators

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// ArrowOptions says what to read of Arrow files. The zero value is everything.
type ArrowOptions struct {
	// Columns names the columns to read, in this order; nil means all.
	Columns []string
	// FS, if set, is the file system that holds the files, such as one embedded in
	// the program.
	FS fs.FS
}

// ReadArrow reads files in the Arrow IPC format, in the file form (also known as
// Feather version 2) or the stream form: a file, the files of a directory, or
// those a glob names. Their bodies may be compressed, by LZ4 or zstd; columns must
// be of types that rows can have, without dictionaries. Files are checked, and rows
// cut into shards, as ReadRowFiles says.
func ReadArrow(b *engine.Builder, path string, o ArrowOptions) *engine.Dataset {
	return ReadRowFiles(b, o.FS, path, RowFormat{Op: "ReadArrow", Columns: o.Columns, Open: openArrow})
}

// arrowFile is an open file of either form.
type arrowFile struct {
	*arrowIndex
	r      io.ReaderAt
	schema *arrow.Schema
}

func openArrow(r io.ReaderAt, size int64) (RowFile, error) {
	x, err := indexArrow(r, size)
	if err != nil {
		return nil, err
	}
	f := &arrowFile{arrowIndex: x, r: r}
	stream, err := f.stream(x.end, memory.NewGoAllocator())
	if err != nil {
		return nil, err
	}
	f.schema = stream.Schema()
	stream.Release()
	return f, nil
}

// endMark ends a stream.
var endMark = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// stream reads the batches from an offset on, behind the schema, as the stream
// that they would be alone.
func (f *arrowFile) stream(from int64, mem memory.Allocator) (*batch.StreamReader, error) {
	schema := io.NewSectionReader(f.r, f.arrowIndex.schema[0], f.arrowIndex.schema[1]-f.arrowIndex.schema[0])
	batches := &wholeReader{io.NewSectionReader(f.r, from, f.end-from), f.end - from}
	return batch.NewStreamReader(io.MultiReader(schema, batches, bytes.NewReader(endMark)), mem)
}

// wholeReader reads what has left bytes, so that what stands behind it does not
// stand in for bytes that are gone.
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

func (f *arrowFile) Schema() *arrow.Schema { return f.schema }

func (f *arrowFile) NumRows() int64 { return f.rows }

func (f *arrowFile) Close() error { return nil }

func (f *arrowFile) Rows(row int64, columns []int, mem memory.Allocator) (RowCursor, error) {
	// The last batch that begins at or before the row.
	k := sort.Search(len(f.first), func(k int) bool { return f.first[k] > row }) - 1
	from, skip := f.end, int64(0)
	if k >= 0 {
		from, skip = f.begin[k], row-f.first[k]
	}
	stream, err := f.stream(from, mem)
	if err != nil {
		return nil, err
	}
	return &arrowCursor{stream: stream, columns: columns, skip: skip}, nil
}

// arrowCursor reads batch by batch.
type arrowCursor struct {
	stream  *batch.StreamReader
	columns []int
	skip    int64 // rows to pass over
}

func (c *arrowCursor) Next(int) (arrow.Record, error) {
	for {
		rows, err := c.stream.Read()
		if err != nil {
			return nil, err
		}
		n := rows.NumRows()
		if c.skip >= n {
			rows.Release()
			c.skip -= n
			continue
		}
		part, err := batch.Slice(rows, int(c.skip), int(n))
		rows.Release()
		if err != nil {
			return nil, err
		}
		c.skip = 0
		picked, err := batch.Select(part, c.columns)
		part.Release()
		return picked, err
	}
}

func (c *arrowCursor) Close() error {
	c.stream.Release()
	return nil
}
