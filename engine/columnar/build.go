package columnar

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
)

// WithNulls returns an argument for NewBatch or NewValues: the given values, of which value i
// is missing if null(i) is true. values is a slice, a Matrix, Vectors or Sparse, as NewBatch
// takes them. It may hold anything where a value is missing.
func WithNulls(values any, null func(i int) bool) any { return nullable{values, null} }

type nullable struct {
	values any
	null   func(i int) bool
}

// NewValues returns the values of a column, owned by the caller. The argument values is of a
// type that NewBatch takes for such a column.
func NewValues(mem Allocator, column Column, values any) (Values, error) {
	dt, err := batch.ParseType(column.Type)
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	var arr arrow.Array
	if err == nil {
		arr, err = arrayOf(mem, arrow.Field{Name: column.Name, Type: dt}, values)
	}
	if err == nil && arr.NullN() > 0 && !column.Nullable {
		err = fmt.Errorf("has %d nulls and is not nullable", arr.NullN())
		arr.Release()
	}
	if err != nil {
		return Values{}, fmt.Errorf("columnar: NewValues: column %q: %w", column.Name, err)
	}
	return Values(batch.HandleOfArray(arr)), nil
}

// NewBatch returns a batch, owned by the caller, that has the given schema. columns holds the
// values of each column, in the order of the schema. The values of a column have a type that
// Get returns for it; or they are a []string, []bool or [][]byte instead of Texts, Bools or
// Bytes; or they are Values of another batch; or they are the result of WithNulls. All columns
// must have the same length. A batch without columns has no rows.
//
// Slices of numbers are not copied, nor is the Data of a Matrix for a column of type vector[N].
// They belong to the batch from then on, and must not be modified. Other columns are allocated
// from mem, such as the allocator of a run's context.
func NewBatch(mem Allocator, schema Schema, columns ...any) (Batch, error) {
	if schema.IsZero() {
		return Batch{}, fmt.Errorf("columnar: NewBatch: the schema is the zero value")
	}
	if len(columns) != schema.Len() {
		return Batch{}, fmt.Errorf("columnar: NewBatch: %d columns are given, the schema has %d: %v", len(columns), schema.Len(), schema)
	}
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	made := make([]arrow.Array, 0, len(columns))
	defer func() {
		for _, arr := range made {
			arr.Release()
		}
	}()
	for i, c := range columns {
		f := schema.arrow().Field(i)
		arr, err := arrayOf(mem, f, c)
		if err != nil {
			return Batch{}, fmt.Errorf("columnar: NewBatch: column %q: %w", f.Name, err)
		}
		made = append(made, arr)
	}
	rows := 0
	for i, arr := range made {
		if i == 0 {
			rows = arr.Len()
		}
		if arr.Len() != rows {
			return Batch{}, fmt.Errorf("columnar: NewBatch: column %q has %d values, column %q has %d",
				schema.Column(i).Name, arr.Len(), schema.Column(0).Name, rows)
		}
	}
	rec := array.NewRecord(schema.arrow(), made, int64(rows))
	err := batch.Validate(rec)
	if err == nil {
		err = batch.ValidateText(rec)
	}
	if err != nil {
		rec.Release()
		return Batch{}, fmt.Errorf("columnar: NewBatch: %w", err)
	}
	return Batch(batch.HandleOf(rec)), nil
}

// arrayOf returns the array, owned by the caller, of a column f whose values were given to
// NewBatch.
func arrayOf(mem Allocator, f arrow.Field, values any) (arrow.Array, error) {
	var arr arrow.Array
	switch v := values.(type) {
	case nullable:
		if v.null == nil {
			return nil, fmt.Errorf("WithNulls is given no function")
		}
		return withNulls(mem, f, v)
	case Values:
		if arr = v.array(); arr == nil {
			return nil, fmt.Errorf("it is the zero Values, of no batch")
		}
		arr.Retain()
	case []float64:
		arr = batch.WrapArray(arrow.PrimitiveTypes.Float64, v)
	case []float32:
		arr = batch.WrapArray(arrow.PrimitiveTypes.Float32, v)
	case []int64:
		arr = batch.WrapArray(either(f.Type, arrow.TIMESTAMP, arrow.PrimitiveTypes.Int64), v)
	case []int32:
		arr = batch.WrapArray(either(f.Type, arrow.DATE32, arrow.PrimitiveTypes.Int32), v)
	case []int16:
		arr = batch.WrapArray(arrow.PrimitiveTypes.Int16, v)
	case []int8:
		arr = batch.WrapArray(arrow.PrimitiveTypes.Int8, v)
	case []uint64:
		arr = batch.WrapArray(arrow.PrimitiveTypes.Uint64, v)
	case []uint32:
		arr = batch.WrapArray(arrow.PrimitiveTypes.Uint32, v)
	case []uint16:
		arr = batch.WrapArray(arrow.PrimitiveTypes.Uint16, v)
	case []uint8:
		arr = batch.WrapArray(arrow.PrimitiveTypes.Uint8, v)
	case []bool:
		b := array.NewBooleanBuilder(mem)
		defer b.Release()
		b.AppendValues(v, nil)
		arr = b.NewArray()
	case []string:
		b := array.NewStringBuilder(mem)
		defer b.Release()
		b.AppendValues(v, nil)
		arr = b.NewArray()
	case [][]byte:
		b := array.NewBinaryBuilder(mem, arrow.BinaryTypes.Binary)
		defer b.Release()
		for _, value := range v {
			b.Append(value)
		}
		arr = b.NewArray()
	case Bools:
		return arrayOf(mem, f, handleOf(v.array))
	case Texts:
		return arrayOf(mem, f, handleOf(v.array))
	case Bytes:
		return arrayOf(mem, f, handleOf(v.array))
	case Matrix, Vectors, Sparse:
		var err error
		if arr, err = vectorsOf(mem, f.Type, v); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("is %s, and a %T is given", batch.TypeName(f.Type), values)
	}
	if got := arr.DataType(); !arrow.TypeEqual(got, f.Type) {
		arr.Release()
		return nil, fmt.Errorf("is %s, and a %T of %s is given", batch.TypeName(f.Type), values, batch.TypeName(got))
	}
	return arr, nil
}

// handleOf returns the array of a view as Values. For a zero view, a is nil, and the result is
// the zero Values.
func handleOf[A interface {
	comparable
	arrow.Array
}](a A) Values {
	var none A
	if a == none {
		return Values{}
	}
	return Values(batch.HandleOfArray(a))
}

// either returns the type column if its ID is id, and other if not.
func either(column arrow.DataType, id arrow.Type, other arrow.DataType) arrow.DataType {
	if column.ID() == id {
		return column
	}
	return other
}

// withNulls returns the array of v.values in which value i is null if v.null(i) is true.
func withNulls(mem Allocator, f arrow.Field, v nullable) (arrow.Array, error) {
	switch v.values.(type) {
	case Values, Bools, Texts, Bytes, nullable:
		return nil, fmt.Errorf("WithNulls takes slices and vectors, not %T", v.values)
	}
	all, err := arrayOf(mem, f, v.values)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	valid := memory.NewResizableBuffer(mem)
	defer valid.Release()
	valid.Resize(int(bitutil.BytesForBits(int64(all.Len()))))
	clear(valid.Bytes())
	nulls := 0
	for i := range all.Len() {
		if v.null(i) {
			nulls++
		} else {
			bitutil.SetBit(valid.Bytes(), i)
		}
	}
	buffers := append([]*memory.Buffer{valid}, all.Data().Buffers()[1:]...)
	d := array.NewData(all.DataType(), all.Len(), buffers, all.Data().Children(), nulls, 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

// vectorsOf returns the array of values, a Matrix, Vectors or Sparse, for a column of type dt.
func vectorsOf(mem Allocator, dt arrow.DataType, values any) (arrow.Array, error) {
	switch v := values.(type) {
	case Matrix:
		if !v.whole() {
			return nil, fmt.Errorf("a matrix of %d x %d has %d values", v.Rows, v.Cols, len(v.Data))
		}
		if dt.ID() == arrow.LIST {
			return batch.NewVariableVectors(mem, evenOffsets(v.Rows, v.Cols), v.Data)
		}
		if dim := batch.VectorDim(dt); v.Cols == 0 || dim != 0 && dim != v.Cols {
			return nil, fmt.Errorf("is %s, and a matrix of %d columns is given", batch.TypeName(dt), v.Cols)
		}
		return batch.WrapVectorArray(v.Data, v.Cols), nil
	case Vectors:
		return batch.NewVariableVectors(mem, v.Offsets, v.Values)
	case Sparse:
		size := v.Cols
		if batch.VectorDim(dt) == 0 {
			size = 0
		}
		return batch.NewSparseArray(mem, batch.CSR{Size: size, Indptr: v.Offsets, Indices: v.Indices, Values: v.Values})
	}
	return nil, fmt.Errorf("%T has no vectors", values)
}

// whole reports whether Data has Rows*Cols values, and whether Rows and the length of Data fit
// in an int32, as a batch requires.
func (m Matrix) whole() bool {
	switch n := len(m.Data); {
	case m.Rows < 0 || m.Cols < 0 || m.Rows > math.MaxInt32 || n > math.MaxInt32:
		return false
	case m.Cols == 0:
		return n == 0
	default:
		return n%m.Cols == 0 && n/m.Cols == m.Rows
	}
}

// evenOffsets returns the offsets of rows vectors that have cols components each.
func evenOffsets(rows, cols int) []int32 {
	offsets := make([]int32, rows+1)
	for i := range offsets {
		offsets[i] = int32(i * cols)
	}
	return offsets
}
