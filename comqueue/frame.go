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

	// What the frame holds of a slot's memory, and the file of its rows beyond that; see held.go.
	memory interface{ Release(bytes int64) }
	bytes  int64
	file   *onDisk
}

// column caches the view of one column.
type column struct {
	name    string
	kind    viewKind
	hasNull bool

	matrix  Matrix
	vectors Vectors
	sparse  Sparse
	floats  []float64
	ints    []int64
	bools   Bools
	texts   Texts
	// differs says of vectors of any sizes which row has another number of components than
	// the first; "" where all agree, and are a matrix.
	differs string
}

type viewKind int

const (
	otherView viewKind = iota
	matrixView
	vectorsView
	sparseView
	floatsView
	intsView
	boolsView
	textsView
)

// String returns the name of the accessor.
func (k viewKind) String() string {
	return [...]string{"no view", "Matrix", "Vectors", "Sparse", "Floats", "Ints", "Bools", "Texts"}[k]
}

// wants returns the type of the column.
func (k viewKind) wants() string {
	return [...]string{"nothing", "vectors of one size", "vectors of any sizes", "sparse vectors", "float64", "int64", "bool", "utf8"}[k]
}

// scalar says that nulls may be among the values.
func (k viewKind) scalar() bool { return k >= floatsView }

// cure says what to do about nulls.
func (k viewKind) cure() string {
	if k.scalar() {
		return "read it as Nullable, or leave such rows out"
	}
	return "leave such rows out"
}

// viewOfType returns the view that a column of a type has.
func viewOfType(dt arrow.DataType) viewKind {
	switch dt.ID() {
	case arrow.FLOAT64:
		return floatsView
	case arrow.INT64:
		return intsView
	case arrow.BOOL:
		return boolsView
	case arrow.STRING:
		return textsView
	}
	switch dt := dt.(type) {
	case *arrow.FixedSizeListType:
		if dt.Elem().ID() == arrow.FLOAT64 && batch.IsVector(dt) {
			return matrixView
		}
	case *arrow.ListType:
		if dt.Elem().ID() == arrow.FLOAT64 && batch.IsVector(dt) {
			return vectorsView
		}
	case *arrow.StructType:
		if batch.IsVector(dt) {
			return sparseView
		}
	}
	return otherView
}

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

// Vectors are vectors of any sizes. They must not be modified.
type Vectors struct {
	// Row i has the values Offsets[i] to Offsets[i+1] of Values.
	Offsets []int32
	Values  []float64
}

// Len returns how many there are.
func (v Vectors) Len() int { return max(0, len(v.Offsets)-1) }

// Row returns a view of row i.
func (v Vectors) Row(i int) []float64 {
	return v.Values[v.Offsets[i]:v.Offsets[i+1]:v.Offsets[i+1]]
}

// Bools are the values of a column of bools.
type Bools struct{ array *array.Boolean }

// Len returns how many there are.
func (b Bools) Len() int { return b.array.Len() }

// At returns value i.
func (b Bools) At(i int) bool { return b.array.Value(i) }

// Texts are the values of a column of text.
type Texts struct{ array *array.String }

// Len returns how many there are.
func (t Texts) Len() int { return t.array.Len() }

// At returns text i, which is the column's memory: what is to outlive the queue is cloned.
func (t Texts) At(i int) string { return t.array.Value(i) }

// Nulls says which values of a column are missing.
type Nulls struct{ array arrow.Array }

// At reports whether value i is null.
func (n Nulls) At(i int) bool { return n.array.IsNull(i) }

// Any reports whether there is any.
func (n Nulls) Any() bool { return n.array.NullN() > 0 }

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

// viewColumn prepares the view that a column of its type can give. Vectors with nulls give
// none: their values would be undefined.
func viewColumn(name string, arr arrow.Array) column {
	c := column{name: name, kind: viewOfType(arr.DataType()), hasNull: arr.NullN() > 0}
	switch c.kind {
	case floatsView:
		c.floats = arr.(*array.Float64).Float64Values()
	case intsView:
		c.ints = arr.(*array.Int64).Int64Values()
	case boolsView:
		c.bools = Bools{arr.(*array.Boolean)}
	case textsView:
		c.texts = Texts{arr.(*array.String)}
	case matrixView:
		if data, dim, ok := batch.DenseView(arr); ok {
			c.matrix = Matrix{Rows: arr.Len(), Cols: dim, Data: data}
		}
	case vectorsView:
		if offsets, values, ok := batch.RaggedView(arr); ok {
			c.vectors = Vectors{offsets, values}
			c.matrix, c.differs = evenRows(offsets, values)
		}
	case sparseView:
		csr, ok := batch.SparseView(arr)
		if !ok && !c.hasNull {
			c.kind = otherView // laid out in a way that no writer of ours has
		}
		c.sparse = Sparse{Rows: arr.Len(), Cols: csr.Size, Offsets: csr.Indptr, Indices: csr.Indices, Values: csr.Values}
	}
	return c
}

// evenRows returns variable vectors as a matrix where all rows have the same
// number of components, and else which row has not.
func evenRows(indptr []int32, values []float64) (Matrix, string) {
	rows := len(indptr) - 1
	if rows <= 0 {
		return Matrix{}, ""
	}
	cols := indptr[1] - indptr[0]
	for i := range rows {
		if n := indptr[i+1] - indptr[i]; n != cols {
			return Matrix{}, fmt.Sprintf("row 0 has %d components and row %d has %d", cols, i, n)
		}
	}
	return Matrix{Rows: rows, Cols: int(cols), Data: values[indptr[0]:indptr[rows]:indptr[rows]]}, ""
}

// Rows returns the number of rows.
func (f *Frame) Rows() int { return f.rows }

// OnDisk reports whether a file holds the rows, beyond the memory budget: what the disk damages
// there is told when the queue ends, so that what is believed without looking, such as an
// index into memory that assembly takes, is looked at each time.
func (f *Frame) OnDisk() bool { return f.file != nil }

// Record returns the rows as an Arrow record, borrowed from the frame.
func (f *Frame) Record() arrow.Record { return f.record }

// find returns the column of a name if it has the wanted view, and otherwise
// panics with an error that says what there is: the engine turns it into the
// error of the subtask.
func (f *Frame) find(name string, kind viewKind, nullable bool) *column {
	for i := range f.columns {
		c := &f.columns[i]
		if c.name != name {
			continue
		}
		even := kind == matrixView && c.kind == vectorsView && c.differs == ""
		if c.kind != kind && !even || c.hasNull && !nullable {
			arr := f.record.Column(i)
			problem := "is " + batch.TypeName(arr.DataType())
			if arr.NullN() > 0 {
				problem = fmt.Sprintf("has %d nulls", arr.NullN())
			}
			if c.differs != "" {
				problem += ", of which " + c.differs
			}
			panic(&FrameError{Column: name, Problem: fmt.Sprintf("%s, not %s without nulls", problem, kind.wants())})
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

// nulls returns the nulls of a column that is there.
func (f *Frame) nulls(name string) Nulls {
	for i := range f.columns {
		if f.columns[i].name == name {
			return Nulls{f.record.Column(i)}
		}
	}
	return Nulls{}
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
	return f.find(name, matrixView, false).matrix
}

// Sparse returns the rows of a sparse vector column.
func (f *Frame) Sparse(name string) Sparse {
	return f.find(name, sparseView, false).sparse
}

// IsSparse reports whether the column is a sparse vector column without nulls.
func (f *Frame) IsSparse(name string) bool {
	return slices.ContainsFunc(f.columns, func(c column) bool { return c.name == name && c.kind == sparseView && !c.hasNull })
}

// Floats returns the values of a float64 column.
func (f *Frame) Floats(name string) []float64 { return f.find(name, floatsView, false).floats }

// Ints returns the values of an int64 column.
func (f *Frame) Ints(name string) []int64 { return f.find(name, intsView, false).ints }

// Release gives the frame's memory back. The queue calls it when it ends.
func (f *Frame) Release() {
	if f.record != nil {
		f.record.Release()
		f.record, f.columns = nil, nil
	}
	if f.bytes > 0 {
		f.memory.Release(f.bytes)
		f.bytes = 0
	}
}

// PartitionedData names the rows of a dataset within a queue: each subtask holds
// those of the shards it owns.
type PartitionedData struct {
	key      shared.ShardKey[*Frame]
	declared *declared
	state    func(ctx *ComContext, rows *Frame) int64
}

// PartitionedRows makes the key of partitioned data.
func PartitionedRows(name string) PartitionedData {
	return PartitionedData{key: shared.PerShard[*Frame](name, frameCodec{}), declared: &declared{}}
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
type BroadcastData struct {
	key      shared.Key[*Frame]
	declared *declared
}

// BroadcastRows makes the key of broadcast data.
func BroadcastRows(name string) BroadcastData {
	return BroadcastData{shared.Replicated[*Frame](name, frameCodec{}), &declared{}}
}

// Get returns all rows.
func (d BroadcastData) Get(ctx *ComContext) *Frame { return d.key.Get(ctx) }

// Name returns the key's name.
func (d BroadcastData) Name() string { return d.key.Name() }
