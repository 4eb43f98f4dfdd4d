package kmeans_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

// Inertia of the best three clusters of iris, as scikit-learn's KMeans has it: of
// the bundled file, and of the measurements that Fisher printed, from which the
// widespread file of the UCI repository differs in two flowers.
const (
	irisInertia   = 78.940841426146
	fisherInertia = 78.851441426146
)

// fisher returns iris with the two flowers put right.
func fisher(t testing.TB) data {
	m := iris(t)
	copy(m.row(34), []float64{4.9, 3.1, 1.5, 0.2})
	copy(m.row(37), []float64{4.9, 3.6, 1.4, 0.1})
	return m
}

func TestIrisEqualsTheReference(t *testing.T) {
	for best, m := range map[float64]data{irisInertia: iris(t), fisherInertia: fisher(t)} {
		first := [][]float64{m.row(0), m.row(50), m.row(100)}
		o := train(t, m, kmeans.Params{Init: kmeans.Given, Centers: first, Tol: -1}, engine.Parallelism(2))
		centers, near, inertia := referenceLloyd(m, first, 100, 0)
		requireCenters(t, centers, o.model.Centers)
		require.InDelta(t, inertia, o.model.Inertia, 1e-9)
		require.InDelta(t, best, o.model.Inertia, 1e-9)
		require.True(t, o.model.Converged)
		require.Len(t, o.predictions, m.n)
		for i, p := range o.predictions {
			require.Equal(t, int64(i), p.ID)
			require.Equal(t, int64(near[i]), p.Cluster)
		}
	}
}

func TestRandomInit(t *testing.T) {
	m := iris(t)
	for seed := range uint64(5) {
		o := train(t, m, kmeans.Params{K: 3, Init: kmeans.Random, Seed: seed}, engine.Parallelism(3))
		require.GreaterOrEqual(t, o.model.Inertia, irisInertia-1e-9)
		require.Less(t, o.model.Inertia, 200.0)
	}
}
