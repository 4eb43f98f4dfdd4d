package main

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
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared"
)

// shape is the size of a problem.
type shape struct {
	Rows     int
	Features int
	PerRow   int  // features that are not 0 in a row; 0: dense rows
	Even     bool // every feature of sparse rows is as likely as any other
}

func (s shape) sparse() bool { return s.PerRow > 0 }

// width is the number of values of a row in the file.
func (s shape) width() int {
	if s.sparse() {
		return s.PerRow
	}
	return s.Features
}

// Files of a problem, little-endian: values (float64, width of a row), indices of sparse
// rows (int32, ascending), labels (float64, 0 or 1).
const (
	valuesFile  = "values"
	indicesFile = "indices"
	labelsFile  = "labels"
)

// generate writes the files of a problem. A row is a function of seed and number.
func generate(dir string, s shape, seed uint64) (err error) {
	var files []*bufio.Writer
	for _, name := range []string{valuesFile, indicesFile, labelsFile} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		out := bufio.NewWriterSize(f, 1<<20)
		defer func() { err = errors.Join(err, out.Flush(), f.Close()) }()
		files = append(files, out)
	}
	draw := shared.NewRandom(seed, "bench/linear coefficients", 0, 0)
	truth := make([]float64, s.Features)
	for j := range truth {
		truth[j] = draw.NormFloat64() / math.Sqrt(float64(s.width()))
		if s.sparse() {
			truth[j] *= 2
		}
	}
	columns := make([]int, s.width())
	for i := range s.Rows {
		draw := shared.NewRandom(seed, "bench/linear rows", 0, i)
		s.columns(&draw, columns)
		var margin float64
		for _, j := range columns {
			x := draw.NormFloat64()
			if s.sparse() {
				put32(files[1], uint32(j))
			} else {
				x *= s.scale(j)
			}
			margin += x * truth[j]
			put64(files[0], x)
		}
		y := 0.0
		if draw.Float64() < 1/(1+math.Exp(-margin)) {
			y = 1
		}
		put64(files[2], y)
	}
	return nil
}

// columns draws the columns of a row, ascending: column j of sparse rows as often as words
// of a text are, roughly, in proportion to (j+1)^(−2/3), unless all are to be alike.
func (s shape) columns(draw *shared.Random, columns []int) {
	for p := range columns {
		columns[p] = p
		for s.sparse() {
			u := draw.Float64()
			if !s.Even {
				u = u * u * u
			}
			columns[p] = int(float64(s.Features) * u)
			if !slices.Contains(columns[:p], columns[p]) {
				break
			}
		}
	}
	slices.Sort(columns)
}

// scale is the standard deviation of a dense column, from 0.1 to 3.
func (s shape) scale(j int) float64 {
	return 0.1 * math.Pow(30, float64(j)/float64(max(1, s.Features-1)))
}

func put64(w *bufio.Writer, v float64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
	_, _ = w.Write(b[:]) // Flush tells
}

func put32(w *bufio.Writer, v uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], v)
	_, _ = w.Write(b[:])
}

// Columns of the source.
const (
	vectorColumn = "features"
	labelColumn  = "label"
)

// fileRows adds a source of the rows of a problem.
func fileRows(b *engine.Builder, dir string, s shape) (*engine.Dataset, error) {
	vector, err := batch.VectorType(s.Features)
	if s.sparse() {
		vector, err = batch.SparseType(s.Features)
	}
	if err != nil {
		return nil, err
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: vectorColumn, Type: vector}, {Name: labelColumn, Type: arrow.PrimitiveTypes.Float64}}, nil)
	return b.Add(engine.Spec{Op: "ReadRaw", Schema: schema, Source: func() engine.Source {
		return &rawSource{dir: dir, shape: s, schema: schema}
	}}), nil
}

// rawSource reads a subtask's shards of the files, a batch at a time.
type rawSource struct {
	dir    string
	shape  shape
	schema *arrow.Schema
	files  map[string]*os.File
}

func (r *rawSource) Open(*engine.Context) error {
	r.files = map[string]*os.File{}
	for _, name := range []string{valuesFile, indicesFile, labelsFile} {
		f, err := os.Open(filepath.Join(r.dir, name))
		if err != nil {
			return err
		}
		r.files[name] = f
	}
	return nil
}

func (r *rawSource) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func (r *rawSource) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	part := shared.Split(r.shape.Rows, c.Shards, shard)
	for lo := part.Lo; lo < part.Hi; lo += c.BatchRows {
		if err := r.emit(c, shard, lo, min(lo+c.BatchRows, part.Hi), out); err != nil {
			return err
		}
	}
	return nil
}

// read fills raw with what stands from an element on.
func (r *rawSource) read(name string, raw []byte, from int64) error {
	if _, err := r.files[name].ReadAt(raw, from); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

func (r *rawSource) emit(c *engine.Context, shard, lo, hi int, out engine.Output) error {
	w, n := r.shape.width(), hi-lo
	values, labels := make([]float64, n*w), make([]float64, n)
	err := errors.Join(
		r.read(valuesFile, arrow.Float64Traits.CastToBytes(values), int64(lo)*int64(w)*8),
		r.read(labelsFile, arrow.Float64Traits.CastToBytes(labels), int64(lo)*8))
	if err != nil {
		return err
	}
	var features arrow.Array
	if r.shape.sparse() {
		csr := batch.CSR{Size: r.shape.Features, Indptr: make([]int32, n+1), Indices: make([]int32, n*w), Values: values}
		for i := range csr.Indptr {
			csr.Indptr[i] = int32(i * w)
		}
		if err := r.read(indicesFile, arrow.Int32Traits.CastToBytes(csr.Indices), int64(lo)*int64(w)*4); err != nil {
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
	return out.Emit(shard, rows)
}
