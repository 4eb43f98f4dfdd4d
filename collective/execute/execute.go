package execute

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// Reducer folds buffers element by element. Several goroutines may call it at the same time.
type Reducer interface {
	// Fold sets dst[i] = left[i] ∘ right[i]. The three slices have equal length, a multiple of
	// the size of an element. dst may be the memory of left or of right.
	Fold(dst, left, right []byte)
}

// Operation is one run of a program.
type Operation struct {
	Seq  uint64          // number of the operation within the group
	What *mesh.Operation // describes the operation; the hash is equal on all ranks

	// Before, if not 0, is a hash of the operations of this rank before this operation. It is
	// sent with each message, so that ranks whose earlier operations differ get an error.
	Before uint64

	Elem   int // bytes of an element
	Layout program.Layout

	// In has one buffer for each node of a forest, where a nil buffer is absent, or a single
	// buffer. Out has the length of the program's output. Chunk c of In[0] and chunk c of Out
	// must be the same memory for all c, or In[0] and Out must not overlap.
	In  [][]byte
	Out []byte

	Reducer Reducer // for collectives that reduce
}
