package operators

import "github.com/superstep-ml/superstep/internal/batch"

// SparseVector is a vector that only holds the components that are not zero. As a field of a
// row it is a column of type sparse, or sparse[n] with the tag `column:"name,size=n"`.
type SparseVector = batch.SparseVector
