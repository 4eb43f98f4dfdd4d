//go:build !race

// The race detector allocates for itself, which is not what is counted here.

package kmeans_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

// Supersteps allocate nothing: a training of many allocates what one of few does,
// but for the lists of what was reported, which grow by doubling, and for chance
// in the Go runtime.
func TestSuperstepsAllocateNothing(t *testing.T) {
	const few, many = 10, 40
	m := mixture(31, 4000, 6, 1, 3)
	var first [][]float64
	for a := range 24 {
		first = append(first, m.row(a))
	}
	for _, distance := range []kmeans.Distance{kmeans.Euclidean, kmeans.Cosine} {
		mallocs := func(updates int) float64 {
			p := kmeans.Params{VectorCol: "features", Init: kmeans.Given, Centers: first, Tol: -1, MaxIter: updates, Distance: distance}
			job := engine.Define("steady", func(b *engine.Builder, _ struct{}) error {
				engine.Collect(kmeans.Train(m.dataset(b), p), "model")
				return nil
			})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(2), engine.Shards(8))
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			defer r.Release()
			require.Len(t, r.Series("kmeans", "inertia"), updates+1)
			return float64(after.Mallocs - before.Mallocs)
		}
		mallocs(few)
		least := func(updates int) float64 { return min(mallocs(updates), mallocs(updates), mallocs(updates)) }
		perStep := (least(many) - least(few)) / (many - few)
		t.Logf("%v: %.2f allocations per superstep", distance, perStep)
		require.Less(t, perStep, 1.0)
	}
}
