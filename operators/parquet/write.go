package parquet

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

// Compression is the compression of the pages of a file.
type Compression string

// These are the compressions that files can have.
const (
	Snappy       Compression = "snappy" // the default: fast, and supported by every Parquet reader
	Zstd         Compression = "zstd"   // gives smaller files than Snappy
	Gzip         Compression = "gzip"
	Uncompressed Compression = "uncompressed"
)

var codecs = map[Compression]compress.Compression{
	"": compress.Codecs.Snappy, Snappy: compress.Codecs.Snappy, Zstd: compress.Codecs.Zstd,
	Gzip: compress.Codecs.Gzip, Uncompressed: compress.Codecs.Uncompressed,
}

// WriteOptions are the options of Write.
type WriteOptions struct {
	// Compression is the compression of pages; empty means Snappy.
	Compression Compression
	// PerShard makes Write write one file per shard, including empty shards, into a directory
	// at the path. The files are named part-00000.parquet and so on.
	PerShard bool
}

// Write writes the rows of d, in their order, to a Parquet file at path. See
// operators.WriteFiles for when and where the file appears. The bytes are the same at every
// parallelism.
func Write(d *engine.Dataset, path string, o WriteOptions) {
	f := operators.FileFormat{Op: "WriteParquet", Extension: "parquet"}
	codec, ok := codecs[o.Compression]
	if !ok && d != nil {
		d.Builder().Errorf("%s: unknown compression %q; there are snappy, zstd, gzip and uncompressed", f.Op, o.Compression)
		return
	}
	if d != nil && !d.Poisoned() && d.Schema().Len() == 0 {
		d.Builder().Errorf("%s: the dataset has no columns", f.Op)
		return
	}
	if o.Compression != "" && o.Compression != Snappy {
		f.Attrs = []engine.Attr{{Key: "compression", Value: string(o.Compression)}}
	}
	f.File = func(w io.Writer, schema engine.Schema, mem columnar.Allocator) (operators.RowWriter, error) {
		made, err := newWriter(w, arrowrows.Arrow(schema), codec, mem)
		if err != nil {
			return nil, err
		}
		return made, nil
	}
	operators.WriteFiles(d, path, o.PerShard, f)
}

// writer writes one file.
type writer struct {
	mem    memory.Allocator
	stored *arrow.Schema
	out    *footerSink
	w      *pqarrow.FileWriter
}

func newWriter(w io.Writer, schema *arrow.Schema, codec compress.Compression, mem memory.Allocator) (*writer, error) {
	stored := storedSchema(schema)
	columns, err := json.Marshal(batch.Columns(schema))
	if err != nil {
		return nil, err
	}
	// The file names its writer without a version, so that its bytes are the same for all
	// versions. Arrow's writer gets no allocator and uses the Go heap, as it does not release
	// memory when a write fails.
	options := []pq.WriterProperty{
		pq.WithCompression(codec), pq.WithCreatedBy(writtenBy), pq.WithDataPageVersion(pageVersion(stored)),
		pq.WithMaxStatsSize(longestStatistic), pq.WithDictionaryDefault(!longNames(stored)),
	}
	for _, f := range stored.Fields() {
		if f.Nullable && arrow.IsUnsignedInteger(f.Type.ID()) { // Arrow's writer would compare them as signed numbers
			options = append(options, pq.WithStatsFor(f.Name, false))
		}
	}
	props := pq.NewWriterProperties(options...)
	out := &footerSink{w: w}
	f, err := pqarrow.NewFileWriter(stored, out, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	if err := f.AppendKeyValueMetadata(columnsKey, string(columns)); err != nil {
		return nil, err
	}
	origin, err := encodeSchema(schema, stored)
	if err == nil && origin != "" {
		err = f.AppendKeyValueMetadata(arrowKey, origin)
	}
	if err != nil {
		return nil, err
	}
	return &writer{mem: mem, stored: stored, out: out, w: f}, nil
}

// Arrow's writer also writes the metadata of each column of a row group behind the column's
// pages. The metadata lists encodings in the random order of a map. The writer uses a buffer of
// 4 KiB that it never flushes, so nothing is written to the file if the metadata is smaller
// than 4 KiB. The metadata is smaller if the minimum and the maximum have at most
// longestStatistic bytes each and the column's name has at most longestName bytes.
const (
	longestStatistic = 512
	longestName      = 2000
)

// longNames reports whether a column has a name of more than longestName bytes. A file with
// such a column is written without dictionaries. Then each type of page has only one encoding,
// so the encodings have only one order.
func longNames(schema *arrow.Schema) bool {
	return slices.ContainsFunc(schema.Fields(), func(f arrow.Field) bool { return len(f.Name) > longestName })
}

// pageVersion returns the version of data pages that files of a schema have. Version 1 is
// supported by more programs, but for lists Arrow's writer takes quadratic time to write it: it
// copies its buffer whenever it adds a run of levels, because the length of all levels precedes
// them.
func pageVersion(schema *arrow.Schema) pq.DataPageVersion {
	for _, f := range schema.Fields() {
		if arrow.IsNested(f.Type.ID()) {
			return pq.DataPageV2
		}
	}
	return pq.DataPageV1
}

// Write writes a batch as a row group.
func (w *writer) Write(in engine.Batch) error {
	rows := arrowrows.Record(in)
	stored, err := toStored(w.mem, w.stored, rows)
	if err != nil {
		return err
	}
	defer stored.Release()
	err = w.w.Write(stored)
	if w.out.err != nil {
		return w.out.err
	}
	return err
}

// Close writes the footer.
func (w *writer) Close() error {
	w.out.hold = true
	if err := w.w.Close(); err != nil || w.out.err != nil {
		return errors.Join(w.out.err, err)
	}
	return w.out.finish()
}

// footerSink is the destination of Arrow's writer. It makes the bytes of the footer the same in
// every run. Arrow's writer lists the encodings of a column in the order of iteration over a
// map, which may differ between runs if a dictionary has become too large. Write stores the
// first error of w and does not return it, because Arrow's writer panics or closes itself after
// some errors.
type footerSink struct {
	w    io.Writer
	err  error
	hold bool // Write appends bytes to end instead of passing them to w
	end  []byte
}

// Write implements io.Writer.
func (s *footerSink) Write(b []byte) (int, error) {
	if s.hold {
		s.end = append(s.end, b...)
		return len(b), nil
	}
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
	return len(b), nil
}

// finish writes the bytes in end to w, with sorted encodings in the footer.
func (s *footerSink) finish() error {
	behind := len(s.end) - 8 // index of the last 8 bytes: the footer's size, and PAR1
	if behind < 0 {
		return errors.New("the file was closed without a footer")
	}
	at := behind - int(binary.LittleEndian.Uint32(s.end[behind:]))
	if at < 0 {
		return errors.New("the file's footer is incomplete")
	}
	meta, err := decodeFooter(s.end[at:behind])
	if err != nil {
		return err
	}
	for _, group := range meta.RowGroups {
		for _, column := range group.Columns {
			encodings := column.MetaData.EncodingStats
			sort.Slice(encodings, func(i, j int) bool {
				a, b := encodings[i], encodings[j]
				return a.PageType < b.PageType || a.PageType == b.PageType && a.Encoding < b.Encoding
			})
		}
	}
	end := bytes.NewBuffer(s.end[:at:at])
	n, err := meta.WriteTo(end, nil)
	if err != nil {
		return err
	}
	_, err = s.w.Write(append(binary.LittleEndian.AppendUint32(end.Bytes(), uint32(n)), "PAR1"...))
	return err
}
