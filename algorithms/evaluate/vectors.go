package evaluate

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// vectorReader reads the rows of a column of dense or sparse vectors as dense float64 slices.
type vectorReader struct {
	vectors *batch.Vectors
	sparse  bool
	size    int // number of components of a sparse row
	row     []float64
}

// openVectors returns a reader of a column without nulls. If the type of the column has no
// size, size is the number of components of its sparse vectors.
func openVectors(column arrow.Array, size int) (*vectorReader, error) {
	dt := column.DataType()
	if !batch.IsVector(dt) {
		return nil, fmt.Errorf("vectors of type %s cannot be read", batch.TypeName(dt))
	}
	v := &vectorReader{vectors: batch.VectorsOf(column), sparse: rows.LayoutOf(dt) == rows.SparseRows, size: size}
	if d := batch.VectorDim(dt); d > 0 {
		v.size = d
	}
	return v, nil
}

// at returns the components of row i. The slice is valid until the next call.
func (v *vectorReader) at(i int) []float64 {
	if !v.sparse {
		return v.vectors.Dense(i)
	}
	indices, values := v.vectors.Sparse(i)
	n := v.size
	if len(indices) > 0 {
		n = max(n, int(indices[len(indices)-1])+1)
	}
	v.row = kernel.Sized(v.row, n)
	clear(v.row)
	for p, j := range indices {
		v.row[j] = values[p]
	}
	return v.row
}
