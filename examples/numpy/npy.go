package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// ReadNPY returns a dataset with the rows of a matrix that NumPy saved in the file at path. The
// matrix must have elements of type float64, little-endian, in C order, and at least one
// column. The dataset has one column, with the given name, whose values are the rows as
// vectors. The rows are divided equally among the shards, in the order of the file.
//
// The shape of the matrix is recorded in the job: it is read from the file once, when the job
// is first built, and passed to all processes that run the job.
func ReadNPY(b *engine.Builder, path, column string) *engine.Dataset {
	const op = "ReadNPY"
	fact, err := b.Fact(op+" "+path, func() (string, error) {
		m, err := shapeOf(path)
		return fmt.Sprint(m.begin, m.rows, m.cols), err
	})
	m := matrix{path: path}
	if err == nil {
		_, err = fmt.Sscan(fact, &m.begin, &m.rows, &m.cols)
	}
	if err == nil {
		m.schema, err = columnar.NewSchema(columnar.Column{Name: column, Type: fmt.Sprintf("vector[%d]", m.cols)})
	}
	if err != nil {
		b.Errorf("%s: %w", op, err) // Run returns it with all other errors, and does not start the job
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op:     op,
		Attrs:  []engine.Attr{{Key: "path", Value: path}, {Key: "rows", Value: strconv.Itoa(m.rows)}},
		Schema: m.schema,
		Source: func() engine.Source { return &npySource{matrix: m} },
	})
}

// matrix is a matrix in a file: the offset of its first row in bytes, its shape, and its schema.
type matrix struct {
	path              string
	begin, rows, cols int
	schema            engine.Schema
}

var shape = regexp.MustCompile(`'descr': '<f8', 'fortran_order': False, 'shape': \((\d+), (\d+)\)`)

// shapeOf returns the offset and the shape of a matrix. It reads them from the head of the file:
// magic bytes, a version, the length of a description, and the description.
func shapeOf(path string) (m matrix, err error) {
	f, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer f.Close()
	head := make([]byte, 10)
	if _, err := io.ReadFull(f, head); err != nil || string(head[:7]) != "\x93NUMPY\x01" {
		return m, fmt.Errorf("%s is no file of NumPy's format 1", path)
	}
	text := make([]byte, binary.LittleEndian.Uint16(head[8:]))
	if _, err := io.ReadFull(f, text); err != nil {
		return m, fmt.Errorf("%s ends within its head", path)
	}
	info, err := f.Stat()
	if err != nil {
		return m, err
	}
	found := shape.FindSubmatch(text)
	if found == nil {
		return m, fmt.Errorf("%s is %q; want a matrix of float64 in C order, as of numpy.ascontiguousarray(x, '<f8')", path, text)
	}
	m.begin = len(head) + len(text)
	rows, err1 := strconv.ParseUint(string(found[1]), 10, 31)
	cols, err2 := strconv.ParseUint(string(found[2]), 10, 20)
	if err1 != nil || err2 != nil || cols == 0 || info.Size() != int64(m.begin)+int64(rows*cols*8) {
		return m, fmt.Errorf("%s has %d bytes, which do not hold %s rows of %s columns", path, info.Size(), found[1], found[2])
	}
	m.rows, m.cols = int(rows), int(cols)
	return m, nil
}

// npySource reads the shards of one subtask.
type npySource struct {
	matrix
	file *os.File
}

func (s *npySource) Open(*engine.Context) (err error) {
	s.file, err = os.Open(s.path)
	return err
}

func (s *npySource) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// ReadShard emits the rows of a shard in batches of at most c.BatchRows rows. The rows of a
// shard depend on the number of shards, and not on the number of subtasks.
func (s *npySource) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	part := sharding.Split(s.rows, c.Shards, shard)
	for lo := part.Lo; lo < part.Hi; lo += c.BatchRows {
		if err := s.emit(c, shard, lo, min(part.Hi-lo, c.BatchRows), out); err != nil {
			return err
		}
	}
	return nil
}

func (s *npySource) emit(c *engine.Context, shard, lo, n int, out engine.Output) error {
	bytes := make([]byte, n*s.cols*8)
	if _, err := s.file.ReadAt(bytes, int64(s.begin)+int64(lo)*int64(s.cols*8)); err != nil {
		return fmt.Errorf("row %d of %s: %w", lo, s.path, err)
	}
	values := make([]float64, n*s.cols)
	for i := range values {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(bytes[i*8:]))
	}
	rows, err := columnar.NewBatch(c.Allocator, s.schema, columnar.Matrix{Rows: n, Cols: s.cols, Data: values})
	if err != nil {
		return err
	}
	defer rows.Release()
	return out.Emit(shard, rows)
}
