package collective

// Normal returns a copy of v in normal form: sparse, without zeros, and with the same bits for
// every NaN. It returns an error if the indices or lengths of v are invalid.
func (v SparseVector[T]) Normal() (SparseVector[T], error) { return v.normalise(v.Length) }

// Plus returns the sum of two vectors of the same length, both in normal form, as
// AllReduceSparse computes it at a node of its tree. Elements that cancel out are kept as
// zeros. Neither operand is changed.
func (v SparseVector[T]) Plus(w SparseVector[T]) SparseVector[T] { return addSparse(v, w) }
