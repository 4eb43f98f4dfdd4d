package comqueue

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared"
)

// Frame holds rows as columns, in one piece: those of one shard, or all rows of
// a broadcast dataset. Its accessors are views: they copy nothing, allocate
// nothing and must not be written to. A Frame is safe for concurrent reading.
type Frame struct {
	rows    int
	record  arrow.Record
	columns []column
	onDisk  bool
}

// column caches the views of one column.
type column struct {
	name   string
	matrix Matrix
	sparse Sparse
	floats []float64
	ints   []int64
	kind   viewKind
	// differs says of a column of variable vectors which row has another number of
	// components than the first; "" where all agree.
	differs string
}

type viewKind int

const (
	otherView viewKind = iota
	matrixView
	sparseView
	floatsView
	intsView
)

// Matrix is a dense row-major matrix.
type Matrix struct {
	Rows, Cols int
	// Data holds row i at Data[i*Cols:(i+1)*Cols]. It must not be modified.
	Data []float64
}

// Row returns a view of row i.
func (m Matrix) Row(i int) []float64 { return m.Data[i*m.Cols : (i+1)*m.Cols : (i+1)*m.Cols] }

// Sparse is a matrix in compressed sparse row form. It must not be modified.
type Sparse struct {
	Rows int
	Cols int // 0 where the column's type does not say
	// Row i has the entries Offsets[i] to Offsets[i+1] of Indices and Values.
	Offsets []int32
	Indices []int32
	Values  []float64
}

// newFrame joins batches into one frame, without copying where there is one.
// The batches are borrowed.
func newFrame(mem memory.Allocator, schema *arrow.Schema, batches []arrow.Record) (*Frame, error) {
	var record arrow.Record
	switch len(batches) {
	case 0:
		record = batch.Empty(schema)
	case 1:
		record = batches[0]
		record.Retain()
	default:
		joined, err := batch.Concat(mem, batches)
		if err != nil {
			return nil, err
		}
		record = joined
	}
	return frameOf(record), nil
}

// frameOf returns a frame that takes over the caller's reference to its rows.
func frameOf(record arrow.Record) *Frame {
	f := &Frame{rows: int(record.NumRows()), record: record, columns: make([]column, record.NumCols())}
	for i := range f.columns {
		f.columns[i] = viewColumn(record.ColumnName(i), record.Column(i))
	}
	return f
}

// viewColumn prepares the views a column of its type can give. Columns with
// nulls give none: their values would be undefined.
func viewColumn(name string, arr arrow.Array) column {
	c := column{name: name}
	if arr.NullN() > 0 {
		return c
	}
	switch arr := arr.(type) {
	case *array.Float64:
		c.kind, c.floats = floatsView, arr.Float64Values()
	case *array.Int64:
		c.kind, c.ints = intsView, arr.Int64Values()
	default:
		if data, dim, ok := batch.DenseView(arr); ok {
			c.kind, c.matrix = matrixView, Matrix{Rows: arr.Len(), Cols: dim, Data: data}
		} else if indptr, values, ok := batch.RaggedView(arr); ok {
			c.kind, c.matrix, c.differs = evenRows(indptr, values)
		} else if csr, ok := batch.SparseView(arr); ok {
			c.kind = sparseView
			c.sparse = Sparse{Rows: arr.Len(), Cols: csr.Size, Offsets: csr.Indptr, Indices: csr.Indices, Values: csr.Values}
		}
	}
	return c
}

// evenRows returns variable vectors as a matrix where all rows have the same
// number of components, and else which row has not.
func evenRows(indptr []int32, values []float64) (viewKind, Matrix, string) {
	rows := len(indptr) - 1
	if rows == 0 {
		return matrixView, Matrix{}, ""
	}
	cols := indptr[1] - indptr[0]
	for i := range rows {
		if n := indptr[i+1] - indptr[i]; n != cols {
			return otherView, Matrix{}, fmt.Sprintf("row 0 has %d components and row %d has %d", cols, i, n)
		}
	}
	return matrixView, Matrix{Rows: rows, Cols: int(cols), Data: values[indptr[0]:indptr[rows]:indptr[rows]]}, ""
}

// Rows returns the number of rows.
func (f *Frame) Rows() int { return f.rows }

// OnDisk reports whether a file holds the rows, beyond the memory budget: what the disk damages
// there is told when the queue ends, so that what is believed without looking, such as an
// index into memory that assembly takes, is looked at each time.
func (f *Frame) OnDisk() bool { return f.onDisk }

// Record returns the rows as an Arrow record, borrowed from the frame.
func (f *Frame) Record() arrow.Record { return f.record }

// find returns the column of a name if it has the wanted view, and otherwise
// panics with an error that says what there is: the engine turns it into the
// error of the subtask.
func (f *Frame) find(name, wanted string, kind viewKind) *column {
	for i := range f.columns {
		c := &f.columns[i]
		if c.name != name {
			continue
		}
		if c.kind != kind {
			arr := f.record.Column(i)
			problem := "is " + batch.TypeName(arr.DataType())
			if arr.NullN() > 0 {
				problem = fmt.Sprintf("has %d nulls", arr.NullN())
			}
			if c.differs != "" {
				problem += ", of which " + c.differs
			}
			panic(&FrameError{Column: name, Problem: fmt.Sprintf("%s, not %s without nulls", problem, wanted)})
		}
		return c
	}
	names := make([]string, len(f.columns))
	for i := range f.columns {
		names[i] = f.columns[i].name
	}
	slices.Sort(names)
	panic(&FrameError{Column: name, Problem: fmt.Sprintf("does not exist; there are %q", names)})
}

// FrameError says that a frame does not have the column asked for. Accessors of
// Frame panic with it, and the engine reports it with operator, subtask and shard.
type FrameError struct {
	Column, Problem string
}

// Error implements error.
func (e *FrameError) Error() string { return fmt.Sprintf("column %q %s", e.Column, e.Problem) }

// Matrix returns the rows of a dense vector column of float64: of a fixed
// dimension, or of variable vectors that have the same number of components in
// all rows of the frame. A frame without rows of the latter has no columns either.
func (f *Frame) Matrix(name string) Matrix {
	return f.find(name, "a dense vector column", matrixView).matrix
}

// Sparse returns the rows of a sparse vector column.
func (f *Frame) Sparse(name string) Sparse {
	return f.find(name, "a sparse vector column", sparseView).sparse
}

// IsSparse reports whether the column is a sparse vector column without nulls.
func (f *Frame) IsSparse(name string) bool {
	return slices.ContainsFunc(f.columns, func(c column) bool { return c.name == name && c.kind == sparseView })
}

// Floats returns the values of a float64 column.
func (f *Frame) Floats(name string) []float64 { return f.find(name, "float64", floatsView).floats }

// Ints returns the values of an int64 column.
func (f *Frame) Ints(name string) []int64 { return f.find(name, "int64", intsView).ints }

// Release gives the frame's memory back. The queue calls it when it ends.
func (f *Frame) Release() {
	if f.record != nil {
		f.record.Release()
		f.record, f.columns = nil, nil
	}
}

// Decode copies the frame's rows into structs whose fields are columns, as
// operators.Map does.
func Decode[T any](f *Frame) ([]T, error) {
	codec, err := batch.NewCodec[T]()
	if err != nil {
		return nil, err
	}
	reader, err := codec.Bind(f.record.Schema())
	if err != nil {
		return nil, err
	}
	if err := reader.Reset(f.record); err != nil {
		return nil, err
	}
	rows := make([]T, f.rows)
	for i := range rows {
		if err := reader.Read(i, &rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// PartitionedData names the rows of a dataset within a queue: each subtask holds
// those of the shards it owns.
type PartitionedData struct {
	key   shared.ShardKey[*Frame]
	state func(ctx *ComContext, rows *Frame) int64
}

// PartitionedRows makes the key of partitioned data.
func PartitionedRows(name string) PartitionedData {
	return PartitionedData{key: shared.PerShard[*Frame](name, frameCodec{})}
}

// WithState returns the key with what InitWithPartitionedData is to know of the queue's
// stages: how many bytes they keep on the heap for the rows of a shard besides, such as
// margins. The memory budget makes room for them, in place of rows if need be. It is asked
// once for each shard, on the subtask that owns it, when broadcast data are there.
func (d PartitionedData) WithState(bytes func(ctx *ComContext, rows *Frame) int64) PartitionedData {
	d.state = bytes
	return d
}

// Get returns the rows of a shard the subtask owns. They are good until the queue ends, and
// beyond the memory budget a file holds them: what is to outlive the queue is copied.
func (d PartitionedData) Get(ctx *ComContext, shard int) *Frame { return d.key.Get(ctx, shard) }

// Name returns the key's name.
func (d PartitionedData) Name() string { return d.key.Name() }

// BroadcastData names rows that every subtask sees whole. There is one copy per
// process, which must not be modified.
type BroadcastData struct{ key shared.Key[*Frame] }

// BroadcastRows makes the key of broadcast data.
func BroadcastRows(name string) BroadcastData {
	return BroadcastData{shared.Replicated[*Frame](name, frameCodec{})}
}

// Get returns all rows.
func (d BroadcastData) Get(ctx *ComContext) *Frame { return d.key.Get(ctx) }

// Name returns the key's name.
func (d BroadcastData) Name() string { return d.key.Name() }
