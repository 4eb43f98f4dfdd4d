package forest

import "github.com/superstep-ml/superstep/algorithms/internal/treecode"

// Tried is for tests.
func Tried(p Params, d int) int {
	n, _ := p.tried(d)
	return n
}

// What tests of trees that travel write and read them by.
var (
	appendTree, readTree = treecode.Append, treecode.Read
	errTrees             = treecode.ErrCut
)
