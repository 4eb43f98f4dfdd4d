package kmeans_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestSparseRowsFarFromTheOrigin: the same rows give the same model, dense or
// sparse, also where what they share is much larger than what tells them apart.
func TestSparseRowsFarFromTheOrigin(t *testing.T) {
	type dense struct {
		X []float64 `column:"x,dim=2"`
	}
	type sparse struct {
		X operators.SparseVector `column:"x,size=2"`
	}
	for _, offset := range []float64{1e8, 1e9, 1e10} {
		var d []dense
		var s []sparse
		for i := range 32 {
			v := []float64{offset + float64(i%4) + float64(i%2)*100, 1}
			d = append(d, dense{v})
			s = append(s, sparse{operators.SparseVector{Size: 2, Indices: []int32{0, 1}, Values: v}})
		}
		train := func(rows func(b *engine.Builder) *engine.Dataset) *kmeans.Model {
			result, err := engine.Run(t.Context(), engine.Anonymous(func(b *engine.Builder) error {
				operators.Collect(b, "model", kmeans.Train(rows(b), kmeans.Params{VectorCol: "x", K: 2}))
				return nil
			}), struct{}{})
			require.NoError(t, err)
			defer result.Release()
			m, err := kmeans.ModelOf(result, "model")
			require.NoError(t, err)
			return m
		}
		want := train(func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, d) })
		got := train(func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, s) })
		require.InEpsilon(t, 32.0, want.Inertia, 1e-9) // two clusters of pairs 2 apart: 32 rows, each 1 from its centre
		require.InEpsilon(t, want.Inertia, got.Inertia, 1e-9)
		require.Equal(t, want.Centers, got.Centers)
		near, dist := got.PredictSparse([]int32{1, 0}, []float64{1, offset})
		require.Equal(t, -1, near, "indices out of order")
		require.True(t, math.IsNaN(dist))
	}
}
