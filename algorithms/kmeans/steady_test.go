//go:build !race

// The race detector makes allocations of its own, which must not be counted here.

package kmeans_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

// Supersteps allocate nothing. A training of many supersteps allocates as much as one of few.
// Two things are allowed for: the lists of reports, which grow by doubling, and chance in the
// Go runtime.
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
