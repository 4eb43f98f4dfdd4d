package forest

import "github.com/superstep-ml/superstep/algorithms/internal/treecode"

// Tried exports Params.tried to tests.
func Tried(p Params, d int) int {
	n, _ := p.tried(d)
	return n
}

// These variables export the codec of trees to tests.
var (
	appendTree, readTree = treecode.Append, treecode.Read
	errTrees             = treecode.ErrCut
)
