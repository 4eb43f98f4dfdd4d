package rows

import (
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
)

// NumberAt returns value i of a column of numbers or bools as float64. It returns NaN for
// columns of other types.
func NumberAt(column arrow.Array, i int) float64 {
	switch arr := column.(type) {
	case *array.Float64:
		return arr.Value(i)
	case *array.Float32:
		return float64(arr.Value(i))
	case *array.Int8:
		return float64(arr.Value(i))
	case *array.Int16:
		return float64(arr.Value(i))
	case *array.Int32:
		return float64(arr.Value(i))
	case *array.Int64:
		return float64(arr.Value(i))
	case *array.Uint8:
		return float64(arr.Value(i))
	case *array.Uint16:
		return float64(arr.Value(i))
	case *array.Uint32:
		return float64(arr.Value(i))
	case *array.Uint64:
		return float64(arr.Value(i))
	case *array.Boolean:
		if arr.Value(i) {
			return 1
		}
		return 0
	}
	return math.NaN()
}

// converted returns column, converted for the type to. Numbers become float64, and dense
// vectors become vectors with the component type of to. If to is nil, the type does not change.
// The caller owns the result.
func converted(mem memory.Allocator, column arrow.Array, to arrow.DataType) arrow.Array {
	switch {
	case to != nil && batch.IsVector(to):
		return WithComponents(mem, column, components(to))
	case to == nil || to.ID() != arrow.FLOAT64, column.DataType().ID() == arrow.FLOAT64 && column.NullN() == 0:
		column.Retain()
		return column
	}
	b := array.NewFloat64Builder(mem)
	defer b.Release()
	b.Reserve(column.Len())
	for i := range column.Len() {
		v := 0.0 // the value for a null, whose row is refused or left out
		if !column.IsNull(i) {
			v = NumberAt(column, i)
		}
		b.UnsafeAppend(v)
	}
	return b.NewArray()
}

// components returns the type of the components if vector is a type of dense vectors, else nil.
func components(vector arrow.DataType) arrow.DataType {
	switch t := vector.(type) {
	case *arrow.FixedSizeListType:
		return t.Elem()
	case *arrow.ListType:
		return t.Elem()
	}
	return nil
}

// VectorsOf returns the type of dense vectors like dt, but with the given type of components,
// float64 or float32. If dt is not a type of dense vectors, VectorsOf returns dt.
func VectorsOf(dt, components arrow.DataType) arrow.DataType {
	switch t := dt.(type) {
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfNonNullable(t.Len(), components)
	case *arrow.ListType:
		if components.ID() == arrow.FLOAT32 {
			return batch.VariableVector32Type()
		}
		return batch.VariableVectorType()
	}
	return dt
}

// WithComponents returns a column of dense vectors with their components converted to the
// component type of to. It returns columns of other types unchanged. The caller owns the
// result. If no conversion is needed, the result shares the memory of vectors.
func WithComponents(mem memory.Allocator, vectors arrow.Array, to arrow.DataType) arrow.Array {
	if own := components(vectors.DataType()); own == nil || own.ID() == to.ID() {
		vectors.Retain()
		return vectors
	}
	// A slice of a larger column refers to all values of that column. Only the values of the
	// slice are converted, unless the slice has nulls: its null bitmap starts at the first row
	// of the larger column, so the values must also start there.
	d, list := vectors.Data(), vectors.(array.ListLike)
	buffers, offset, lo, hi := d.Buffers(), d.Offset(), 0, list.ListValues().Len()
	if n := d.Len(); n > 0 && d.NullN() == 0 {
		first, _ := list.ValueOffsets(0)
		_, last := list.ValueOffsets(n - 1)
		buffers, offset, lo, hi = []*memory.Buffer{nil}, 0, int(first), int(last)
		if ragged, ok := vectors.(*array.List); ok {
			ends := slices.Clone(ragged.Offsets()[d.Offset():][:n+1])
			for i := range ends {
				ends[i] -= int32(first)
			}
			buffers = append(buffers, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(ends)))
		}
	}
	var made arrow.Array
	switch from := list.ListValues().(type) {
	case *array.Float32:
		b := array.NewFloat64Builder(mem)
		defer b.Release()
		b.Reserve(hi - lo)
		for _, v := range from.Float32Values()[lo:hi] {
			b.UnsafeAppend(float64(v))
		}
		made = b.NewArray()
	case *array.Float64:
		b := array.NewFloat32Builder(mem)
		defer b.Release()
		b.Reserve(hi - lo)
		for _, v := range from.Float64Values()[lo:hi] {
			b.UnsafeAppend(float32(v))
		}
		made = b.NewArray()
	}
	defer made.Release()
	data := array.NewData(VectorsOf(d.DataType(), to), d.Len(), buffers, []arrow.ArrayData{made.Data()}, d.NullN(), offset)
	defer data.Release()
	return array.MakeFromData(data)
}
