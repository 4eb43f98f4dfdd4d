// Package rawrows stores generated rows in binary files. All contestants of a benchmark read
// these files without parsing text, so that the figures do not include the time of a parser.
package rawrows

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Layout is the size of a table.
type Layout struct {
	Rows     int
	Features int
	PerRow   int // number of nonzero features in a row; 0 means dense rows
	// Unlabelled is true if rows have no labels.
	Unlabelled bool `json:",omitempty"`
}

// Sparse reports whether rows are sparse.
func (l Layout) Sparse() bool { return l.PerRow > 0 }

// Width returns the number of values of a row in the file.
func (l Layout) Width() int {
	if l.Sparse() {
		return l.PerRow
	}
	return l.Features
}

// files returns the names of the table's files.
func (l Layout) files() []string {
	all := []string{ValuesFile}
	if l.Sparse() {
		all = append(all, IndicesFile)
	}
	if !l.Unlabelled {
		all = append(all, LabelsFile)
	}
	return all
}

// Files of a table, little-endian: values (float64, the width of a row), indices of sparse
// rows (int32, ascending), labels (float64).
const (
	ValuesFile  = "values"
	IndicesFile = "indices"
	LabelsFile  = "labels"
)

// Columns of the source.
const (
	VectorColumn = "features"
	LabelColumn  = "label"
)

// A Writer writes the files of a table, value by value. Close returns the first error.
type Writer struct {
	files  [3]*os.File
	values *bufio.Writer
	index  *bufio.Writer
	labels *bufio.Writer
}

// Create opens the files in a directory.
func Create(dir string) (*Writer, error) {
	w := &Writer{}
	for i, name := range []string{ValuesFile, IndicesFile, LabelsFile} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.files[i] = f
		out := bufio.NewWriterSize(f, 1<<20)
		*[]**bufio.Writer{&w.values, &w.index, &w.labels}[i] = out
	}
	return w, nil
}

// Value adds the next value of the row.
func (w *Writer) Value(v float64) { put64(w.values, v) }

// Index adds the column of the next value of a sparse row.
func (w *Writer) Index(j int) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], uint32(j))
	_, _ = w.index.Write(b[:]) // Flush returns the error
}

// Label adds the label of the next row.
func (w *Writer) Label(y float64) { put64(w.labels, y) }

func put64(w *bufio.Writer, v float64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
	_, _ = w.Write(b[:]) // Flush returns the error
}

// Close flushes and closes the files.
func (w *Writer) Close() error {
	var errs []error
	for i, out := range []*bufio.Writer{w.values, w.index, w.labels} {
		if out != nil {
			errs = append(errs, out.Flush(), w.files[i].Close())
		}
	}
	return errors.Join(errs...)
}

// Table has rows in memory.
type Table struct {
	Layout
	Values  []float64
	Indices []int32 // the columns of Values, for sparse rows only
	Labels  []float64
}

// table returns a table with room for the given number of rows. It reuses the memory of old
// where that is large enough.
func (l Layout) table(rows int, old Table) Table {
	l.Rows = rows
	t := Table{Layout: l, Values: resize(old.Values, rows*l.Width())}
	if l.Sparse() {
		t.Indices = resize(old.Indices, len(t.Values))
	}
	if !l.Unlabelled {
		t.Labels = resize(old.Labels, rows)
	}
	return t
}

func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// raw returns the memory into which the file of the given name is read, and the number of bytes
// that each row takes in this file.
func (t *Table) raw(name string) (raw []byte, perRow int) {
	switch name {
	case ValuesFile:
		return arrow.Float64Traits.CastToBytes(t.Values), 8 * t.Width()
	case IndicesFile:
		return arrow.Int32Traits.CastToBytes(t.Indices), 4 * t.Width()
	}
	return arrow.Float64Traits.CastToBytes(t.Labels), 8
}

// Read reads the rows of a table. If the layout has fewer rows than the files, Read reads the
// first rows of the files.
func Read(dir string, l Layout) (*Table, error) {
	s := source{dir: dir, layout: l}
	err := s.Open(nil)
	if err == nil {
		err = s.read(0, l.Rows)
	}
	return &s.rows, errors.Join(err, s.Close())
}

// Dataset adds a source to a job that emits the rows of a table.
func Dataset(b *engine.Builder, dir string, l Layout) (*engine.Dataset, error) {
	vector, err := batch.VectorType(l.Features)
	if l.Sparse() {
		vector, err = batch.SparseType(l.Features)
	}
	if err != nil {
		return nil, err
	}
	fields := []arrow.Field{{Name: VectorColumn, Type: vector}}
	if !l.Unlabelled {
		fields = append(fields, arrow.Field{Name: LabelColumn, Type: arrow.PrimitiveTypes.Float64})
	}
	schema := arrow.NewSchema(fields, nil)
	return b.Add(engine.Spec{Op: "ReadRaw", Schema: arrowrows.Schema(schema), Source: func() engine.Source {
		return &source{dir: dir, layout: l, schema: schema}
	}}), nil
}

// source reads the shards of a subtask from the files, one batch at a time.
type source struct {
	dir    string
	layout Layout
	schema *arrow.Schema
	files  map[string]*os.File
	rows   Table // the rows of one batch
}

func (r *source) Open(*engine.Context) error {
	r.files = map[string]*os.File{}
	for _, name := range r.layout.files() {
		f, err := os.Open(filepath.Join(r.dir, name))
		if err != nil {
			return err
		}
		r.files[name] = f
	}
	return nil
}

func (r *source) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func (r *source) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	part := sharding.Split(r.layout.Rows, c.Shards, shard)
	for lo := part.Lo; lo < part.Hi; lo += c.BatchRows {
		if err := r.emit(c, shard, lo, min(lo+c.BatchRows, part.Hi), out); err != nil {
			return err
		}
	}
	return nil
}

// read reads the rows [lo, hi) of the table into r.rows.
func (r *source) read(lo, hi int) error {
	r.rows = r.layout.table(hi-lo, r.rows)
	for _, name := range r.layout.files() {
		f := r.files[name]
		raw, perRow := r.rows.raw(name)
		if _, err := f.ReadAt(raw, int64(lo)*int64(perRow)); err != nil {
			return fmt.Errorf("read rows %d to %d of %s: %w", lo, hi, f.Name(), err)
		}
	}
	return nil
}

func (r *source) emit(c *engine.Context, shard, lo, hi int, out engine.Output) error {
	if err := r.read(lo, hi); err != nil {
		return err
	}
	w, n := r.layout.Width(), hi-lo
	var columns []arrow.Array
	if r.layout.Sparse() {
		csr := batch.CSR{Size: r.layout.Features, Indptr: make([]int32, n+1), Indices: r.rows.Indices, Values: r.rows.Values}
		for i := range csr.Indptr {
			csr.Indptr[i] = int32(i * w)
		}
		features, err := batch.NewSparseArray(c.Allocator, csr)
		if err != nil {
			return err
		}
		columns = append(columns, features)
	} else {
		columns = append(columns, batch.NewVectorArray(c.Allocator, r.rows.Values, w))
	}
	if !r.layout.Unlabelled {
		b := array.NewFloat64Builder(c.Allocator)
		defer b.Release()
		b.AppendValues(r.rows.Labels, nil)
		columns = append(columns, b.NewArray())
	}
	rows := array.NewRecord(r.schema, columns, int64(n))
	defer rows.Release()
	for _, column := range columns {
		column.Release()
	}
	return out.Emit(shard, arrowrows.Batch(rows))
}
