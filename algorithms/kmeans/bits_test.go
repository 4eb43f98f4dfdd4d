package kmeans_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// wild returns n points of d components. The magnitudes of the components range from 1e-8 to
// 1e16, so that sums depend on the order of additions.
func wild(n, d int) data {
	m := data{n: n, d: d, w: make([]float64, n)}
	r := sharding.NewRandom(7, "wild", 0, 0)
	for i := range n {
		for range d {
			magnitude := math.Pow(10, -8+24*r.Float64())
			m.x = append(m.x, magnitude*(2*r.Float64()-1))
		}
		m.w[i] = 3 * r.Float64()
	}
	return m
}

// placement is a parallelism p and the number of workers among which the subtasks are divided.
// With 0 workers the job runs without workers, in one process.
type placement struct{ p, workers int }

// requireSame requires that two outcomes have the same bits.
func requireSame(t *testing.T, want, got outcome) {
	t.Helper()
	require.Equal(t, string(want.text), string(got.text))
	require.Equal(t, len(want.predictions), len(got.predictions))
	for i, p := range want.predictions {
		q := got.predictions[i]
		require.Equal(t, p.ID, q.ID)
		require.Equal(t, p.Cluster, q.Cluster)
		require.Equal(t, math.Float64bits(p.Distance), math.Float64bits(q.Distance))
	}
	for _, series := range [][2][]float64{{want.inertia, got.inertia}, {want.movement, got.movement}} {
		require.Equal(t, len(series[0]), len(series[1]))
		for i, v := range series[0] {
			require.Equal(t, math.Float64bits(v), math.Float64bits(series[1][i]))
		}
	}
}

func TestSameBitsAtAnyParallelism(t *testing.T) {
	points := map[string]data{"iris": iris(t), "wild": wild(wildRows, 3)}
	sparse := wild(500, 6)
	for i := range sparse.x {
		if i%3 != 0 {
			sparse.x[i] = 0
		}
	}
	sparse.sparse = true
	points["sparse"] = sparse
	for name, m := range points {
		for _, init := range []kmeans.Init{kmeans.KMeansParallel, kmeans.KMeansPlusPlus, kmeans.Random} {
			for _, distance := range []kmeans.Distance{kmeans.Euclidean, kmeans.Cosine} {
				for _, shards := range []int{8, 128} {
					if distance == kmeans.Cosine && (name == "sparse" || shards == 128) {
						continue
					}
					if m.n > 10_000 && (init != kmeans.KMeansParallel || distance == kmeans.Cosine) {
						continue
					}
					t.Run(fmt.Sprintf("%s %v %v S=%d", name, init, distance, shards), func(t *testing.T) {
						var first outcome
						among := placements
						if shards == 128 || distance == kmeans.Cosine {
							among = fewPlacements
						}
						for i, at := range among {
							if at.p > shards {
								continue
							}
							rows := []int{7, 1024, 1}[i%3]
							if at.workers > 0 && m.n > 10_000 {
								rows = 1024 // a worker sends each collected batch in a separate message
							}
							o := train(t, m, kmeans.Params{K: 5, Init: init, Distance: distance, MaxIter: 6, Tol: -1, Seed: 3},
								engine.Shards(shards), engine.Parallelism(at.p), engine.Workers(at.workers), engine.BatchRows(rows), engine.CheckState(i%2 == 1))
							if i == 0 {
								first = o
							}
							requireSame(t, first, o)
						}
						for _, options := range trial.Cuts(12) {
							o := train(t, m, kmeans.Params{K: 5, Init: init, Distance: distance, MaxIter: 6, Tol: -1, Seed: 3}, append(options, engine.Shards(shards))...)
							requireSame(t, first, o)
						}
					})
				}
			}
		}
	}
}
