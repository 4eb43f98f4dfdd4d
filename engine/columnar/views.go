package columnar

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Number lists the element types of the slices in which columns of numbers, dates and times are
// read. A date32 is read as an int32, the number of days since 1970-01-01. A timestamp is read
// as an int64, the time since the beginning of 1970-01-01 in the unit of the column's type.
type Number interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// View lists the types in which Get and GetNullable return the values of a column.
type View interface {
	[]int8 | []int16 | []int32 | []int64 | []uint8 | []uint16 | []uint32 | []uint64 | []float32 | []float64 |
		Bools | Texts | Bytes | Matrix | Vectors | Sparse
}

// Get returns the values of a column without a copy. It fails if there is no such column, if V
// cannot hold values of its type, or if it has nulls. The values must not be modified, and are
// valid as long as the batch is valid.
func Get[V View](b Batch, column string) (values V, err error) {
	arr, err := b.find(column)
	if err != nil {
		return values, err
	}
	if n := arr.NullN(); n > 0 {
		return values, fmt.Errorf("column %q has %d nulls, for which Get has no room: GetNullable has", column, n)
	}
	return viewAs[V](arr, column)
}

// GetNullable is like Get for a column that may have missing values. nulls reports which values
// are missing; values may hold anything in their positions. A column of vectors, dense or
// sparse, must have no missing values, or GetNullable fails.
func GetNullable[V View](b Batch, column string) (values V, nulls Nulls, err error) {
	arr, err := b.find(column)
	if err != nil {
		return values, Nulls{}, err
	}
	if batch.IsVector(arr.DataType()) && arr.NullN() > 0 {
		return values, Nulls{}, fmt.Errorf("column %q: vectors with nulls have no view: leave such rows out", column)
	}
	values, err = viewAs[V](arr, column)
	return values, Nulls{arr}, err
}

// Nulls returns a Nulls that reports which values of a column are missing.
func (b Batch) Nulls(column string) (Nulls, error) {
	arr, err := b.find(column)
	return Nulls{arr}, err
}

// viewAs returns the values of arr as a V. column is the column's name, for errors.
func viewAs[V View](arr arrow.Array, column string) (values V, err error) {
	var ok bool
	switch out := any(&values).(type) {
	case *[]float64:
		*out, ok = numbers(arr, (*array.Float64).Float64Values)
	case *[]float32:
		*out, ok = numbers(arr, (*array.Float32).Float32Values)
	case *[]int64:
		if *out, ok = numbers(arr, (*array.Int64).Int64Values); !ok {
			*out, ok = times(arr)
		}
	case *[]int32:
		if *out, ok = numbers(arr, (*array.Int32).Int32Values); !ok {
			*out, ok = days(arr)
		}
	case *[]int16:
		*out, ok = numbers(arr, (*array.Int16).Int16Values)
	case *[]int8:
		*out, ok = numbers(arr, (*array.Int8).Int8Values)
	case *[]uint64:
		*out, ok = numbers(arr, (*array.Uint64).Uint64Values)
	case *[]uint32:
		*out, ok = numbers(arr, (*array.Uint32).Uint32Values)
	case *[]uint16:
		*out, ok = numbers(arr, (*array.Uint16).Uint16Values)
	case *[]uint8:
		*out, ok = numbers(arr, (*array.Uint8).Uint8Values)
	case *Bools:
		out.array, ok = arr.(*array.Boolean)
	case *Texts:
		out.array, ok = arr.(*array.String)
	case *Bytes:
		out.array, ok = arr.(*array.Binary)
	case *Matrix:
		out.Rows = arr.Len()
		if out.Data, out.Cols, ok = batch.DenseView(arr); !ok {
			var all Vectors
			if all.Offsets, all.Values, ok = batch.RaggedView(arr); ok {
				if *out, err = all.Matrix(); err != nil {
					return values, fmt.Errorf("column %q: %w", column, err)
				}
			}
		}
	case *Vectors:
		out.Offsets, out.Values, ok = batch.RaggedView(arr)
	case *Sparse:
		var csr batch.CSR
		csr, ok = batch.SparseView(arr)
		*out = Sparse{Rows: arr.Len(), Cols: csr.Size, Offsets: csr.Indptr, Indices: csr.Indices, Values: csr.Values}
	}
	if !ok {
		var none V
		return none, fmt.Errorf("column %q is %s, which %T does not read", column, batch.TypeName(arr.DataType()), values)
	}
	return values, nil
}

func numbers[A arrow.Array, T Number](arr arrow.Array, values func(A) []T) ([]T, bool) {
	a, ok := arr.(A)
	if !ok {
		return nil, false
	}
	return values(a), true
}

func times(arr arrow.Array) ([]int64, bool) {
	if arr.DataType().ID() != arrow.TIMESTAMP {
		return nil, false
	}
	return arrow.Int64Traits.CastFromBytes(fixedWidth(arr, arrow.Int64SizeBytes)), true
}

func days(arr arrow.Array) ([]int32, bool) {
	if arr.DataType().ID() != arrow.DATE32 {
		return nil, false
	}
	return arrow.Int32Traits.CastFromBytes(fixedWidth(arr, arrow.Int32SizeBytes)), true
}

// fixedWidth returns the bytes of the values of arr, which take size bytes each.
func fixedWidth(arr arrow.Array, size int) []byte {
	d := arr.Data()
	if d.Len() == 0 {
		return nil
	}
	return d.Buffers()[1].Bytes()[d.Offset()*size : (d.Offset()+d.Len())*size]
}

// Matrix is a dense row-major matrix. It must not be modified.
type Matrix struct {
	Rows, Cols int
	// Data holds row i at Data[i*Cols:(i+1)*Cols].
	Data []float64
}

// Row returns a view of row i.
func (m Matrix) Row(i int) []float64 { return m.Data[i*m.Cols : (i+1)*m.Cols : (i+1)*m.Cols] }

// Sparse is a matrix in compressed sparse row form. It must not be modified.
type Sparse struct {
	Rows int
	Cols int // 0 if the column's type is "sparse", without a size
	// The entries of row i are at Offsets[i] to Offsets[i+1]-1 in Indices and Values.
	Offsets []int32
	Indices []int32
	Values  []float64
}

// Vectors holds vectors whose numbers of components may differ. It must not be modified.
type Vectors struct {
	// Row i is Values[Offsets[i]:Offsets[i+1]].
	Offsets []int32
	Values  []float64
}

// Len returns the number of vectors.
func (v Vectors) Len() int { return max(0, len(v.Offsets)-1) }

// Row returns a view of row i.
func (v Vectors) Row(i int) []float64 {
	return v.Values[v.Offsets[i]:v.Offsets[i+1]:v.Offsets[i+1]]
}

// Matrix returns the vectors as the rows of a matrix. It fails if their numbers of components
// differ. Without vectors the matrix has no columns.
func (v Vectors) Matrix() (Matrix, error) {
	rows := v.Len()
	if rows == 0 {
		return Matrix{}, nil
	}
	cols := v.Offsets[1] - v.Offsets[0]
	for i := range rows {
		if n := v.Offsets[i+1] - v.Offsets[i]; n != cols {
			return Matrix{}, fmt.Errorf("row 0 has %d components and row %d has %d", cols, i, n)
		}
	}
	lo, hi := v.Offsets[0], v.Offsets[rows]
	return Matrix{Rows: rows, Cols: int(cols), Data: v.Values[lo:hi:hi]}, nil
}

// Bools are the values of a column of bools.
type Bools struct{ array *array.Boolean }

// Len returns the number of values.
func (b Bools) Len() int { return lengthOf(b.array) }

// At returns value i.
func (b Bools) At(i int) bool { return b.array.Value(i) }

// Texts are the values of a column of text.
type Texts struct{ array *array.String }

// Len returns the number of values.
func (t Texts) Len() int { return lengthOf(t.array) }

// At returns text i. The string refers to the memory of the batch: clone it to use it after the
// batch was released.
func (t Texts) At(i int) string { return t.array.Value(i) }

// Bytes are the values of a column of bytes.
type Bytes struct{ array *array.Binary }

// Len returns the number of values.
func (b Bytes) Len() int { return lengthOf(b.array) }

// At returns value i. The slice refers to the memory of the batch.
func (b Bytes) At(i int) []byte { return b.array.Value(i) }

// lengthOf returns the length of a, or 0 if a is nil, as it is in a zero view.
func lengthOf[A interface {
	comparable
	Len() int
}](a A) int {
	var none A
	if a == none {
		return 0
	}
	return a.Len()
}

// Nulls reports which values of a column are missing.
type Nulls struct{ array arrow.Array }

// At reports whether value i is null.
func (n Nulls) At(i int) bool { return n.array != nil && n.array.IsNull(i) }

// Any reports whether any value is null.
func (n Nulls) Any() bool { return n.array != nil && n.array.NullN() > 0 }
