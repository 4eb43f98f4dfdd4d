package forest

import (
	"github.com/superstep-ml/superstep/algorithms/internal/treecode"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// eachTree calls f with each of n trees, in the order of their numbers. src has the trees that
// p subtasks sent, in the encoding of package treecode; subtask i sent the trees i, i+p, i+2p
// and so on. t is memory for one tree, which is reused, so the tree passed to f is valid only
// until f returns.
func eachTree(src []byte, n, p int, t *tree.Tree, f func(i int, t *tree.Tree) error) error {
	at := make([][]byte, p) // at[i] is the rest of src that begins with the next tree of subtask i
	for task := range at {
		at[task] = src
		for i := task; i < n; i += p {
			var err error
			if _, src, err = treecode.Cut(src); err != nil {
				return err
			}
		}
	}
	if len(src) > 0 {
		return treecode.ErrCut
	}
	for i := range n {
		var err error
		if at[i%p], err = treecode.Read(at[i%p], t); err != nil {
			return err
		}
		if err := f(i, t); err != nil {
			return err
		}
	}
	return nil
}
