// Package rawrows keeps generated rows in binary files that every contestant of a benchmark
// reads without parsing, so that the figures include no parser.
package rawrows

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared"
)

// Layout is the size of a table.
type Layout struct {
	Rows     int
	Features int
	PerRow   int // number of nonzero features in a row; 0 means dense rows
}

// Sparse says whether rows are sparse.
func (l Layout) Sparse() bool { return l.PerRow > 0 }

// Width returns the number of values of a row in the file.
func (l Layout) Width() int {
	if l.Sparse() {
		return l.PerRow
	}
	return l.Features
}

// The files of a table, little-endian: values (float64, Width per row), indices of sparse rows
// (int32, ascending), labels (float64).
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

// Value adds the next value of a row, Index the column of a sparse one, Label a label.
func (w *Writer) Value(v float64) { put64(w.values, v) }

// Index adds the column of the next value.
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

// Dataset adds a source of the rows of a table to a job.
func Dataset(b *engine.Builder, dir string, l Layout) (*engine.Dataset, error) {
	vector, err := batch.VectorType(l.Features)
	if l.Sparse() {
		vector, err = batch.SparseType(l.Features)
	}
	if err != nil {
		return nil, err
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: VectorColumn, Type: vector}, {Name: LabelColumn, Type: arrow.PrimitiveTypes.Float64}}, nil)
	return b.Add(engine.Spec{Op: "ReadRaw", Schema: arrowrows.Schema(schema), Source: func() engine.Source {
		return &source{dir: dir, layout: l, schema: schema}
	}}), nil
}

// source reads a subtask's shards of the files, a batch at a time.
type source struct {
	dir    string
	layout Layout
	schema *arrow.Schema
	files  map[string]*os.File
}

func (r *source) Open(*engine.Context) error {
	r.files = map[string]*os.File{}
	for _, name := range []string{ValuesFile, IndicesFile, LabelsFile} {
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
	part := shared.Split(r.layout.Rows, c.Shards, shard)
	for lo := part.Lo; lo < part.Hi; lo += c.BatchRows {
		if err := r.emit(c, shard, lo, min(lo+c.BatchRows, part.Hi), out); err != nil {
			return err
		}
	}
	return nil
}

// read fills raw with the bytes of a file from an element on.
func (r *source) read(name string, raw []byte, from int64) error {
	if _, err := r.files[name].ReadAt(raw, from); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

func (r *source) emit(c *engine.Context, shard, lo, hi int, out engine.Output) error {
	w, n := r.layout.Width(), hi-lo
	values, labels := make([]float64, n*w), make([]float64, n)
	err := errors.Join(
		r.read(ValuesFile, arrow.Float64Traits.CastToBytes(values), int64(lo)*int64(w)*8),
		r.read(LabelsFile, arrow.Float64Traits.CastToBytes(labels), int64(lo)*8))
	if err != nil {
		return err
	}
	var features arrow.Array
	if r.layout.Sparse() {
		csr := batch.CSR{Size: r.layout.Features, Indptr: make([]int32, n+1), Indices: make([]int32, n*w), Values: values}
		for i := range csr.Indptr {
			csr.Indptr[i] = int32(i * w)
		}
		if err := r.read(IndicesFile, arrow.Int32Traits.CastToBytes(csr.Indices), int64(lo)*int64(w)*4); err != nil {
			return err
		}
		if features, err = batch.NewSparseArray(c.Allocator, csr); err != nil {
			return err
		}
	} else {
		features = batch.NewVectorArray(c.Allocator, values, w)
	}
	defer features.Release()
	b := array.NewFloat64Builder(c.Allocator)
	defer b.Release()
	b.AppendValues(labels, nil)
	label := b.NewArray()
	defer label.Release()
	rows := array.NewRecord(r.schema, []arrow.Array{features, label}, int64(n))
	defer rows.Release()
	return out.Emit(shard, arrowrows.Batch(rows))
}
