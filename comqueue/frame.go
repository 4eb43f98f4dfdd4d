package comqueue

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared"
)

// Frame holds rows as columns, in one piece: the rows of one shard, or all rows of a broadcast
// dataset. Its accessors return views: they copy and allocate nothing, and the views must not
// be written to. A Frame is safe for concurrent reading.
type Frame struct {
	rows    int
	record  arrow.Record
	columns []column

	// memory, bytes and rowBytes are the frame's share of a slot's memory. file has its rows if
	// they do not fit in memory; see held.go.
	memory   budget
	bytes    int64 // bytes of the slot's memory that count as kept
	rowBytes int64 // bytes of rows in memory that could move to a file
	file     *onDisk
}

// budget has the methods of the slot's memory that frames call.
type budget interface {
	GiveUp(bytes int64)
	GiveUpRows(bytes int64)
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
	// differs describes a row of vectors that has another number of components than the first
	// row. It is "" if all rows have the same number, so that they are a matrix.
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

// wants returns the name of the column type that the view requires.
func (k viewKind) wants() string {
	return [...]string{"nothing", "vectors of one size", "vectors of any sizes", "sparse vectors", "float64", "int64", "bool", "utf8"}[k]
}

// scalar reports whether the view is of single values, which may have nulls.
func (k viewKind) scalar() bool { return k >= floatsView }

// cure returns advice on what to do about nulls in a column of this view.
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

// These are the types that columns are read as; see package engine/columnar.
type (
	// Matrix is a dense row-major matrix, of vectors of one size.
	Matrix = columnar.Matrix
	// Sparse is a matrix in compressed sparse row form.
	Sparse = columnar.Sparse
	// Vectors are vectors whose sizes may differ.
	Vectors = columnar.Vectors
	// Bools are the values of a column of bools.
	Bools = columnar.Bools
	// Texts are the values of a column of text.
	Texts = columnar.Texts
	// Nulls says which values of a column are null.
	Nulls = columnar.Nulls
)

// newFrame joins batches into one frame, without a copy if there is only one. The batches are
// borrowed.
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

// frameOf returns a frame of record, and takes over the caller's reference to record.
func frameOf(record arrow.Record) *Frame {
	f := &Frame{rows: int(record.NumRows()), record: record, columns: make([]column, record.NumCols())}
	for i := range f.columns {
		f.columns[i] = viewColumn(arrowrows.Batch(record), record.ColumnName(i), record.Column(i))
	}
	return f
}

// viewColumn prepares the view of a column. Vectors with nulls have no view, as the values of
// nulls would be undefined.
func viewColumn(rows engine.Batch, name string, arr arrow.Array) column {
	c := column{name: name, kind: viewOfType(arr.DataType()), hasNull: arr.NullN() > 0}
	switch c.kind {
	case floatsView:
		c.floats = viewOf[[]float64](rows, name)
	case intsView:
		c.ints = viewOf[[]int64](rows, name)
	case boolsView:
		c.bools = viewOf[Bools](rows, name)
	case textsView:
		c.texts = viewOf[Texts](rows, name)
	case matrixView:
		c.matrix = viewOf[Matrix](rows, name)
	case vectorsView:
		if c.hasNull {
			break
		}
		c.vectors = viewOf[Vectors](rows, name)
		var err error
		if c.matrix, err = c.vectors.Matrix(); err != nil {
			c.differs = err.Error()
		}
	case sparseView:
		sparse, _, err := columnar.GetNullable[Sparse](rows, name)
		if err != nil && !c.hasNull {
			c.kind = otherView // in a layout that this module never writes
		}
		c.sparse = sparse
	}
	return c
}

// viewOf returns the values of a column whose type V reads. It returns the zero value for
// vectors with nulls.
func viewOf[V columnar.View](rows engine.Batch, name string) V {
	values, _, _ := columnar.GetNullable[V](rows, name)
	return values
}

// Rows returns the number of rows.
func (f *Frame) Rows() int { return f.rows }

// OnDisk reports whether the rows are in a file, because the memory budget was used up. A file
// that the disk has damaged is found only when the queue ends. So code in which a wrong value
// would cause an access out of bounds, such as assembly that uses it as an index, must check
// the value at each use.
func (f *Frame) OnDisk() bool { return f.file != nil }

// Batch returns the rows as a batch, borrowed from the frame.
func (f *Frame) Batch() engine.Batch { return arrowrows.Batch(f.record) }

// find returns the column of that name if it has the requested view. Otherwise it panics with a
// FrameError, which the engine turns into the error of the subtask.
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

// nulls returns the nulls of an existing column.
func (f *Frame) nulls(name string) Nulls {
	nulls, _ := f.Batch().Nulls(name)
	return nulls
}

// FrameError says that a frame does not have the requested column. Accessors of Frame panic
// with it, and the engine reports it with operator, subtask and shard.
type FrameError struct {
	Column, Problem string
}

// Error implements error.
func (e *FrameError) Error() string { return fmt.Sprintf("column %q %s", e.Column, e.Problem) }

// Matrix returns the rows of a dense vector column of float64. Its vectors have a fixed size by
// their type, or the same number of components in all rows of the frame. If the type has no
// fixed size and the frame has no rows, the matrix has no columns.
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

// Release releases the frame's memory. It is called when the queue ends.
func (f *Frame) Release() {
	if f.record != nil {
		f.record.Release()
		f.record, f.columns = nil, nil
	}
	if f.memory != nil {
		f.memory.GiveUp(f.bytes)
		f.memory.GiveUpRows(f.rowBytes)
		f.bytes, f.rowBytes = 0, 0
	}
}

// PartitionedData is the key of a dataset's rows in a queue: each subtask holds the rows of the
// shards that it owns.
type PartitionedData struct {
	key      shared.ShardKey[*Frame]
	declared *declaredColumns
	state    func(ctx *ComContext, rows *Frame) int64
}

// PartitionedRows makes the key of partitioned data.
func PartitionedRows(name string) PartitionedData {
	return PartitionedData{key: shared.PerShard[*Frame](name, frameCodec{}), declared: &declaredColumns{}}
}

// WithState returns the key with a function that returns how many bytes the queue's stages keep
// on the heap for the rows of a shard in addition to the rows themselves, for example for
// margins. The memory budget reserves these bytes, and moves rows to disk if necessary. bytes
// is called once for each shard, on the subtask that owns it, when broadcast data are
// available. It must not keep views of the rows, as the rows may still move to disk.
func (d PartitionedData) WithState(bytes func(ctx *ComContext, rows *Frame) int64) PartitionedData {
	d.state = bytes
	return d
}

// Get returns the rows of a shard that the subtask owns. The rows are valid until the queue
// ends, and may be in a file. Copy data that is needed after the queue.
func (d PartitionedData) Get(ctx *ComContext, shard int) *Frame { return d.key.Get(ctx, shard) }

// Name returns the key's name.
func (d PartitionedData) Name() string { return d.key.Name() }

// BroadcastData is the key of a dataset in a queue: every subtask sees all of its rows. There
// is one copy per process, which must not be modified.
type BroadcastData struct {
	key      shared.Key[*Frame]
	declared *declaredColumns
}

// BroadcastRows makes the key of broadcast data.
func BroadcastRows(name string) BroadcastData {
	return BroadcastData{shared.Replicated[*Frame](name, frameCodec{}), &declaredColumns{}}
}

// Get returns all rows.
func (d BroadcastData) Get(ctx *ComContext) *Frame { return d.key.Get(ctx) }

// Name returns the key's name.
func (d BroadcastData) Name() string { return d.key.Name() }
