package kmeans

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// toPrecision returns dense vectors with components of a precision, others as they are;
// the result is owned. Vectors that have it already share their memory.
func toPrecision(mem memory.Allocator, vectors arrow.Array, precision Precision) arrow.Array {
	var values arrow.Array
	switch arr := vectors.(type) {
	case *array.FixedSizeList:
		values = arr.ListValues()
	case *array.List:
		values = arr.ListValues()
	}
	if values == nil || arrow.TypeEqual(values.DataType(), precision.arrowType()) {
		vectors.Retain()
		return vectors
	}
	var made arrow.Array
	switch from := values.(type) {
	case *array.Float32:
		b := array.NewFloat64Builder(mem)
		defer b.Release()
		b.Reserve(from.Len())
		for _, v := range from.Float32Values() {
			b.UnsafeAppend(float64(v))
		}
		made = b.NewArray()
	case *array.Float64:
		b := array.NewFloat32Builder(mem)
		defer b.Release()
		b.Reserve(from.Len())
		for _, v := range from.Float64Values() {
			b.UnsafeAppend(float32(v))
		}
		made = b.NewArray()
	}
	defer made.Release()
	d := vectors.Data()
	kind := vectorsOf(vectors.DataType(), precision.arrowType())
	data := array.NewData(kind, d.Len(), d.Buffers(), []arrow.ArrayData{made.Data()}, d.NullN(), d.Offset())
	defer data.Release()
	return array.MakeFromData(data)
}
