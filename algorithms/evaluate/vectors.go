package evaluate

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/internal/batch"
)

// vectorReader gives the rows of a vector column, of any kind, as dense float64.
type vectorReader struct {
	dense   []float64
	single  []float32
	dim     int
	indptr  []int32
	values  []float64
	singles []float32
	sparse  batch.CSR
	size    int // of sparse rows
	row     []float64
}

// openVectors reads a column without nulls. size is the number of components of sparse
// vectors whose type does not say it.
func openVectors(column arrow.Array, size int) (*vectorReader, error) {
	v := &vectorReader{size: size}
	var ok bool
	if v.dense, v.dim, ok = batch.DenseView(column); ok {
		return v, nil
	}
	if v.single, v.dim, ok = batch.DenseView32(column); ok {
		return v, nil
	}
	if v.indptr, v.values, ok = batch.RaggedView(column); ok {
		return v, nil
	}
	if v.sparse, ok = batch.SparseView(column); ok {
		if v.sparse.Size > 0 {
			v.size = v.sparse.Size
		}
		return v, nil
	}
	if list, isList := column.(*array.List); isList {
		if singles, isSingle := list.ListValues().(*array.Float32); isSingle {
			v.singles, v.indptr = singles.Float32Values(), list.Offsets()[list.Offset():]
			return v, nil
		}
	}
	return nil, fmt.Errorf("vectors of type %s cannot be read", batch.TypeName(column.DataType()))
}

// at returns the components of a row, lent until the next call.
func (v *vectorReader) at(i int) []float64 {
	switch {
	case v.single != nil:
		return v.widen(v.single[i*v.dim : (i+1)*v.dim])
	case v.singles != nil:
		return v.widen(v.singles[v.indptr[i]:v.indptr[i+1]])
	case v.indptr != nil:
		return v.values[v.indptr[i]:v.indptr[i+1]]
	case v.sparse.Indptr != nil:
		indices, values := v.sparse.Row(i)
		n := v.size
		if len(indices) > 0 {
			n = max(n, int(indices[len(indices)-1])+1)
		}
		v.row = resized(v.row, n)
		clear(v.row)
		for p, j := range indices {
			v.row[j] = values[p]
		}
		return v.row
	}
	return v.dense[i*v.dim : (i+1)*v.dim]
}

func (v *vectorReader) widen(x []float32) []float64 {
	v.row = resized(v.row, len(x))
	for j, f := range x {
		v.row[j] = float64(f)
	}
	return v.row
}

// resized returns a slice of n elements, s itself where it has room.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
