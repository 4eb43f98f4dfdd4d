//go:build !race

// These tests count allocations. They are not built with the race detector, whose own
// allocations would distort the counts.

package kmeans_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

// TestSuperstepsAllocateNothing requires that supersteps do not allocate: a training of 40
// supersteps must allocate as much as a training of 10. Only the lists of reports, which grow
// by doubling, and occasional allocations of the Go runtime may differ.
func TestSuperstepsAllocateNothing(t *testing.T) {
	const few, many = 10, 40
	m := mixture(31, 4000, 6, 1, 3)
	var first [][]float64
	for a := range 24 {
		first = append(first, m.row(a))
	}
	for _, distance := range []kmeans.Distance{kmeans.Euclidean, kmeans.Cosine} {
		t.Log(distance)
		trial.StepAllocations(t, 1, few, many, func(b *engine.Builder, updates int) *engine.Dataset {
			p := kmeans.Params{VectorCol: "features", Init: kmeans.Given, Centers: first, Tol: -1, MaxIter: updates, Distance: distance}
			return kmeans.Train(m.dataset(b), p)
		}, func(r *engine.Result, updates int) float64 {
			require.Len(t, r.Series("kmeans", "inertia"), updates+1)
			return 0
		})
	}
}
