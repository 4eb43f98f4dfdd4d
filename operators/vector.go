package operators

import "github.com/superstep-ml/superstep/internal/batch"

// SparseVector is a vector that stores only the components that are not zero. A field of this
// type in a row is a column of type sparse, or sparse[n] with the tag `column:"name,size=n"`.
type SparseVector = batch.SparseVector
