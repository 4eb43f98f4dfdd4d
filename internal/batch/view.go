package batch

import (
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
)

// kind enumerates the supported types without their parameters: timestamps of all units have
// the same kind, and so do vectors of all dimensions.
type kind uint8

const (
	kindInvalid kind = iota
	kindBool
	kindInt8
	kindInt16
	kindInt32
	kindInt64
	kindUint8
	kindUint16
	kindUint32
	kindUint64
	kindFloat32
	kindFloat64
	kindString
	kindBinary
	kindDate32
	kindTimestamp
	kindVector   // fixed-size list of float64
	kindVector32 // fixed-size list of float32
	kindList     // list of float64
	kindList32   // list of float32
	kindSparse   // struct of indices and values
)

// isVector reports whether values of the kind have components.
func (k kind) isVector() bool { return k >= kindVector }

var kindByID = map[arrow.Type]kind{
	arrow.BOOL: kindBool, arrow.INT8: kindInt8, arrow.INT16: kindInt16, arrow.INT32: kindInt32,
	arrow.INT64: kindInt64, arrow.UINT8: kindUint8, arrow.UINT16: kindUint16, arrow.UINT32: kindUint32,
	arrow.UINT64: kindUint64, arrow.FLOAT32: kindFloat32, arrow.FLOAT64: kindFloat64,
	arrow.STRING: kindString, arrow.BINARY: kindBinary, arrow.DATE32: kindDate32,
	arrow.TIMESTAMP: kindTimestamp,
}

// kindOf returns the kind of a type. It accepts lists whose items are declared nullable, as
// other programs write them; Validate checks that no item is null.
func kindOf(dt arrow.DataType) kind {
	switch t := dt.(type) {
	case nil:
		return kindInvalid
	case *arrow.FixedSizeListType:
		switch t.Elem().ID() {
		case arrow.FLOAT64:
			return kindVector
		case arrow.FLOAT32:
			return kindVector32
		}
		return kindInvalid
	case *arrow.ListType:
		switch t.Elem().ID() {
		case arrow.FLOAT64:
			return kindList
		case arrow.FLOAT32:
			return kindList32
		}
		return kindInvalid
	case *arrow.StructType:
		if isSparseStruct(t) {
			return kindSparse
		}
		return kindInvalid
	}
	return kindByID[dt.ID()]
}

func isSparseStruct(t *arrow.StructType) bool {
	if t.NumFields() != 2 || t.Field(0).Name != "indices" || t.Field(1).Name != "values" {
		return false
	}
	indices, ok1 := t.Field(0).Type.(*arrow.ListType)
	values, ok2 := t.Field(1).Type.(*arrow.ListType)
	return ok1 && ok2 && indices.Elem().ID() == arrow.INT32 && values.Elem().ID() == arrow.FLOAT64
}

// view is one column in raw form, for loops in which an interface call per value would be too
// slow. The offset of the array is applied. A view borrows the memory of the array.
type view struct {
	kind  kind
	n     int
	off   int            // index of the bit of row 0 in valid and bits
	valid []byte         // validity bits; nil if no row is null
	bits  []byte         // bool
	base  unsafe.Pointer // fixed width: the value of row 0
	offs  []int32        // utf8, binary, lists, sparse indices: n+1 offsets
	bytes []byte         // utf8, binary: bytes of all rows
	dim   int            // vector, vector32: components; sparse: size or 0
	f64   []float64      // vector: values from row 0 on; else all values, to which offs (sparse: voffs) refers
	f32   []float32      // like f64, for float32
	idx   []int32        // sparse: indices to which offs refers
	voffs []int32        // sparse: n+1 offsets into f64
	dt    arrow.DataType
}

// viewOf returns the view of an array. If the type is not supported, the kind of the view is
// kindInvalid.
func viewOf(arr arrow.Array) view { return viewData(arr.Data()) }

func viewData(d arrow.ArrayData) view {
	v := view{kind: kindOf(d.DataType()), n: d.Len(), off: d.Offset(), dt: d.DataType()}
	if v.kind == kindInvalid {
		return v
	}
	v.valid = validBits(d)
	switch v.kind {
	case kindBool:
		v.bits = bufferBytes(d, 1)
	case kindString, kindBinary:
		v.offs = offsetsOf(d)
		v.bytes = bufferBytes(d, 2)
	case kindVector:
		v.dim = int(d.DataType().(*arrow.FixedSizeListType).Len())
		v.f64 = window(valuesOf[float64](d.Children()[0]), v.off*v.dim, v.n*v.dim)
	case kindVector32:
		v.dim = int(d.DataType().(*arrow.FixedSizeListType).Len())
		v.f32 = window(valuesOf[float32](d.Children()[0]), v.off*v.dim, v.n*v.dim)
	case kindList:
		v.offs = offsetsOf(d)
		v.f64 = valuesOf[float64](d.Children()[0])
	case kindList32:
		v.offs = offsetsOf(d)
		v.f32 = valuesOf[float32](d.Children()[0])
	case kindSparse:
		v.dim = sparseSize(d.DataType())
		indices, values := d.Children()[0], d.Children()[1]
		v.offs = window(offsetsOf(indices), v.off, min(v.n+1, max(len(offsetsOf(indices))-v.off, 0)))
		v.voffs = window(offsetsOf(values), v.off, min(v.n+1, max(len(offsetsOf(values))-v.off, 0)))
		v.idx = valuesOf[int32](indices.Children()[0])
		v.f64 = valuesOf[float64](values.Children()[0])
	default:
		if raw := bufferBytes(d, 1); len(raw) > 0 {
			v.base = unsafe.Pointer(unsafe.SliceData(raw[v.off*fixedWidth(d.DataType()):]))
		}
	}
	return v
}

// null reports whether row i is null.
func (v *view) null(i int) bool {
	return v.valid != nil && v.valid[(v.off+i)>>3]&(1<<uint((v.off+i)&7)) == 0
}

func (v *view) bool(i int) bool { return v.bits[(v.off+i)>>3]&(1<<uint((v.off+i)&7)) != 0 }

// text returns the bytes of row i of a utf8 or binary column.
func (v *view) text(i int) []byte { return v.bytes[v.offs[i]:v.offs[i+1]:v.offs[i+1]] }

// dense64 returns row i of a vector or variable vector of float64.
func (v *view) dense64(i int) []float64 {
	if v.kind == kindVector {
		return v.f64[i*v.dim : (i+1)*v.dim : (i+1)*v.dim]
	}
	return v.f64[v.offs[i]:v.offs[i+1]:v.offs[i+1]]
}

// dense32 returns row i of a vector or variable vector of float32.
func (v *view) dense32(i int) []float32 {
	if v.kind == kindVector32 {
		return v.f32[i*v.dim : (i+1)*v.dim : (i+1)*v.dim]
	}
	return v.f32[v.offs[i]:v.offs[i+1]:v.offs[i+1]]
}

// sparse returns the indices and values of row i of a sparse column.
func (v *view) sparse(i int) ([]int32, []float64) {
	return v.idx[v.offs[i]:v.offs[i+1]:v.offs[i+1]], v.f64[v.voffs[i]:v.voffs[i+1]:v.voffs[i+1]]
}

// at returns the value in row i of a fixed-width column with values of type S.
func at[S any](v *view, i int) S {
	var s S
	return *(*S)(unsafe.Add(v.base, i*int(unsafe.Sizeof(s))))
}

// unsafeSlice returns all rows of a fixed-width column with values of type S.
func unsafeSlice[S any](v *view) []S { return unsafe.Slice((*S)(v.base), v.n) }

// integer returns the value in row i of an integer, date or timestamp column as int64. Values
// of uint64 that are above the range of int64 wrap around.
func (v *view) integer(i int) int64 {
	switch v.kind {
	case kindInt8:
		return int64(at[int8](v, i))
	case kindInt16:
		return int64(at[int16](v, i))
	case kindInt32, kindDate32:
		return int64(at[int32](v, i))
	case kindUint8:
		return int64(at[uint8](v, i))
	case kindUint16:
		return int64(at[uint16](v, i))
	case kindUint32:
		return int64(at[uint32](v, i))
	default:
		return at[int64](v, i)
	}
}

// validBits returns the validity bits, or nil if the recorded null count is 0. It does not
// compute an unknown null count, because Arrow would then write the count to data that
// goroutines share.
func validBits(d arrow.ArrayData) []byte {
	if d.NullN() == 0 {
		return nil
	}
	if raw := bufferBytes(d, 0); len(raw) > 0 {
		return raw
	}
	return nil
}

func bufferBytes(d arrow.ArrayData, i int) []byte {
	if bufs := d.Buffers(); i < len(bufs) && bufs[i] != nil {
		return bufs[i].Bytes()
	}
	return nil
}

// emptyOffsets are the offsets of arrays without rows, which may have no offsets buffer.
var emptyOffsets = []int32{0}

// offsetsOf returns the n+1 offsets of a utf8, binary or list array.
func offsetsOf(d arrow.ArrayData) []int32 {
	raw := castBytes[int32](bufferBytes(d, 1))
	if d.Len() == 0 && len(raw) <= d.Offset() {
		return emptyOffsets
	}
	return raw[d.Offset() : d.Offset()+d.Len()+1]
}

// valuesOf returns the values of a fixed-width array, from row 0 on.
func valuesOf[T any](d arrow.ArrayData) []T {
	return window(castBytes[T](bufferBytes(d, 1)), d.Offset(), d.Len())
}

// window returns s[start:start+n]. If n is 0, s may be nil, as for a missing buffer.
func window[T any](s []T, start, n int) []T {
	if n == 0 {
		return nil
	}
	return s[start : start+n : start+n]
}

// castBytes returns the memory of raw as a slice of T, which must have no pointers.
func castBytes[T any](raw []byte) []T {
	var t T
	n := len(raw) / int(unsafe.Sizeof(t))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(raw))), n)
}

// bytesOf returns the memory of s as bytes. T must have no pointers.
func bytesOf[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}

// fixedWidth returns the number of bytes per value of a fixed-width type, or 0 for bool and all
// other types.
func fixedWidth(dt arrow.DataType) int {
	switch t := dt.(type) {
	case *arrow.FixedSizeListType, *arrow.BooleanType, *arrow.DictionaryType:
		return 0
	case arrow.FixedWidthDataType:
		if t.BitWidth()%8 == 0 {
			return t.BitWidth() / 8
		}
	}
	return 0
}
