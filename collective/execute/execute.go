package execute

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// Reducer folds element by element. One is used by several goroutines at once.
type Reducer interface {
	// Fold does dst[i] = left[i] ∘ right[i]. The three have equal length, a multiple of
	// the element's size; dst may be the memory of left or of right.
	Fold(dst, left, right []byte)
}

// Operation is one run of a program.
type Operation struct {
	Seq  uint64          // number within the group
	What *mesh.Operation // equal hash on all ranks

	// Before stands for the operations before this one, if it is not 0. It travels with
	// each message, and ranks that have been in different ones thus learn that they have.
	Before uint64

	Elem   int // bytes of an element
	Layout program.Layout

	// In has one buffer for each node of a forest (nil: absent), or one in all; Out
	// has the length of the program's output. In[0] and Out may be the same memory,
	// chunk for chunk, or not overlap.
	In  [][]byte
	Out []byte

	Reducer Reducer // of collectives that reduce
}
