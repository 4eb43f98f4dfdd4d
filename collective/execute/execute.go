package execute

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// Reducer folds element by element. Several goroutines use it at once.
type Reducer interface {
	// Fold sets dst[i] = left[i] ∘ right[i]. The three slices have equal length, a multiple of
	// the element's size. dst may be the memory of left or of right.
	Fold(dst, left, right []byte)
}

// Operation is one run of a program.
type Operation struct {
	Seq  uint64          // number within the group
	What *mesh.Operation // describes the operation; the hash is equal on all ranks

	// Before, if not 0, is a hash of the operations before this one. It is sent with each
	// message, so that ranks whose earlier operations differ get an error.
	Before uint64

	Elem   int // bytes of an element
	Layout program.Layout

	// In has one buffer for each node of a forest (nil: absent), or a single buffer. Out has
	// the length of the program's output. In[0] and Out must either be the same memory, chunk
	// for chunk, or not overlap.
	In  [][]byte
	Out []byte

	Reducer Reducer // for collectives that reduce
}
