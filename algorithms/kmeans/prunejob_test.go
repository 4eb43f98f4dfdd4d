package kmeans_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

// TestPrunedTrainings requires that whole trainings have the same bits at any parallelism,
// although each subtask decides by its own rows when to use bounds. Centres, sizes and inertia
// must equal the results of textbook k-means.
func TestPrunedTrainings(t *testing.T) {
	m := mixture(41, 6000, 8, 24, 0.3)
	var first [][]float64
	for a := range 32 {
		first = append(first, m.row(a*7))
	}
	for _, precision := range []kmeans.Precision{kmeans.Double, kmeans.Single} {
		t.Run(precision.String(), func(t *testing.T) {
			p := kmeans.Params{Init: kmeans.Given, Centers: first, MaxIter: 15, Tol: -1, Precision: precision}
			var one outcome
			for i, at := range placements {
				if at.p > 8 {
					continue
				}
				o := train(t, m, p, engine.Parallelism(at.p), engine.Workers(at.workers))
				if i == 0 {
					one = o
				}
				requireSame(t, one, o)
			}
			if precision == kmeans.Single {
				return
			}
			centers, near, inertia := referenceLloyd(m, first, 15, 0)
			requireCenters(t, centers, one.model.Centers)
			require.InEpsilon(t, inertia, one.model.Inertia, 1e-12)
			for i, got := range one.predictions {
				require.Equal(t, int64(near[i]), got.Cluster)
			}
		})
	}
}
