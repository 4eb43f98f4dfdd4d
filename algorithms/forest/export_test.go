package forest

import "github.com/superstep-ml/superstep/algorithms/internal/treecode"

// Tried is for tests.
func Tried(p Params, d int) int {
	n, _ := p.tried(d)
	return n
}

// The codec of trees, for tests.
var (
	appendTree, readTree = treecode.Append, treecode.Read
	errTrees             = treecode.ErrCut
)
