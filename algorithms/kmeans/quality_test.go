package kmeans_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// mixture returns n points of d components. They have normal distributions with the standard
// deviation spread around the given number of centres. The centres are uniform in a cube with
// sides of 10. The points depend only on the arguments.
func mixture(seed uint64, n, d, centers int, spread float64) data {
	center := sharding.NewRandom(seed, "mixture centers", 0, 0)
	means := make([]float64, centers*d)
	for i := range means {
		means[i] = 10 * center.Float64()
	}
	m := data{n: n, d: d, x: make([]float64, 0, n*d)}
	r := sharding.NewRandom(seed, "mixture points", 0, 0)
	for range n {
		a := r.IntN(centers)
		for j := range d {
			m.x = append(m.x, means[a*d+j]+float64(spread*r.NormFloat64()))
		}
	}
	return m
}

// peers has the mean inertia over 10 seeds (random_state 0 to 9) of sklearn.cluster.KMeans(k,
// init="k-means++", n_init=1, max_iter=300, tol=1e-4) of scikit-learn 1.9.1, for the points
// that mixture returns.
var peers = []struct {
	seed           uint64
	n, d, clusters int
	spread         float64
	sklearn        float64
}{
	{1, 2000, 2, 10, 0.5, 856.2571263488344},
	{2, 2000, 8, 20, 1, 16870.67735723088},
	{3, 2000, 16, 10, 2, 134048.59579309303},
	{4, 2000, 3, 25, 1, 4675.697079055033},
}

func TestAsGoodAsScikitLearn(t *testing.T) {
	for _, peer := range peers[:mostPeers] {
		t.Run(fmt.Sprintf("n=%d d=%d k=%d spread=%v", peer.n, peer.d, peer.clusters, peer.spread), func(t *testing.T) {
			m := mixture(peer.seed, peer.n, peer.d, peer.clusters, peer.spread)
			for _, init := range []kmeans.Init{kmeans.KMeansParallel, kmeans.KMeansPlusPlus} {
				var mean float64
				for seed := range uint64(10) {
					o := train(t, m, kmeans.Params{K: peer.clusters, Init: init, Seed: seed + 1, MaxIter: 300}, engine.CheckBroadcasts(false))
					mean += o.model.Inertia / 10
				}
				t.Logf("%v: mean inertia %v, scikit-learn's %v, ratio %.4f", init, mean, peer.sklearn, mean/peer.sklearn)
				require.LessOrEqual(t, mean, 1.02*peer.sklearn)
			}
		})
	}
}
