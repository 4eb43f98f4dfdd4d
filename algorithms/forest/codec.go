package forest

import (
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/treecode"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// sized returns a slice of n elements whose contents are of no use, nil for none.
func sized[T any](s []T, n int) []T {
	if n == 0 {
		return nil
	}
	return slices.Grow(s[:0], n)[:n]
}

// eachTree calls f with each of n trees that p subtasks sent, in the form of package treecode,
// subtask i those of numbers i, i+p, i+2p, …, in the order of numbers. t is memory for one of
// them: what f is given is good until the next.
func eachTree(src []byte, n, p int, t *tree.Tree, f func(i int, t *tree.Tree) error) error {
	at := make([][]byte, p) // what is left of each subtask's, and of those behind it
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
