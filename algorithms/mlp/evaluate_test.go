//go:build !race

package mlp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEvaluateAllocatesNothing requires that evaluating the loss over rows does not allocate
// memory.
func TestEvaluateAllocatesNothing(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		e := opened(t, Params{Seed: 6, L2: 0.1, Task: Classification, Hidden: []int{5, 4}}, 100, 10, sparse)
		v, out := make([]float64, e.Dim), make([]float64, 2+e.Dim)
		list := []int32{3, 1}
		require.Zero(t, testing.AllocsPerRun(20, func() {
			if e.Evaluate(0, v, out) != nil || e.Minibatch.Evaluate(0, list, v, out) != nil {
				panic("evaluation fails")
			}
		}))
	}
}
