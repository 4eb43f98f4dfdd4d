package kmeans_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

// trainer is one of the other trainings with its parameters.
type trainer struct {
	name  string
	queue string
	train func(points *engine.Dataset, p kmeans.Params) *engine.Dataset
}

var trainers = []trainer{
	{"mini-batch", "kmeans mini-batch", func(points *engine.Dataset, p kmeans.Params) *engine.Dataset {
		return kmeans.TrainMiniBatch(points, kmeans.MiniBatchParams{Params: p, BatchSize: 256})
	}},
	{"bisecting", "kmeans bisecting", func(points *engine.Dataset, p kmeans.Params) *engine.Dataset {
		return kmeans.TrainBisecting(points, kmeans.BisectingParams{Params: p})
	}},
}

// run trains and predicts the same rows.
func (tr trainer) run(t testing.TB, m data, p kmeans.Params, options ...engine.Option) outcome {
	t.Helper()
	o, err := tr.try(t, m, p, options...)
	require.NoError(t, err)
	return o
}

func (tr trainer) try(t testing.TB, m data, p kmeans.Params, options ...engine.Option) (outcome, error) {
	t.Helper()
	p.VectorCol = "features"
	if m.w != nil {
		p.WeightCol = "weight"
	}
	job := engine.Define("others", func(b *engine.Builder, _ struct{}) error {
		points := m.dataset(b)
		model := tr.train(points, p)
		engine.Collect(model, "model")
		engine.Collect(kmeans.Predict(points, model, kmeans.PredictOptions{}), "predictions")
		return nil
	})
	options = append([]engine.Option{checked(t), engine.Shards(8), engine.CheckBroadcasts(true)}, options...)
	r, err := engine.Run(context.Background(), job, struct{}{}, options...)
	if err != nil {
		return outcome{}, err
	}
	defer r.Release()
	var o outcome
	o.model, err = kmeans.ModelOf(r, "model")
	require.NoError(t, err)
	o.text, err = o.model.Encode()
	require.NoError(t, err)
	o.predictions, err = engine.Rows[prediction](r, "predictions")
	require.NoError(t, err)
	o.inertia = r.Series(tr.queue, "inertia")
	return o, nil
}

// otherPeers holds the mean inertia over 10 seeds (random_state 0 to 9) of
// MiniBatchKMeans(k, init="k-means++", n_init=1, batch_size=256, max_iter=100) and of
// BisectingKMeans(k, init="k-means++", n_init=3) of scikit-learn 1.9.1, given the points
// of mixture, computed by predict of the model on them.
var otherPeers = []struct {
	seed                 uint64
	n, d, clusters       int
	spread               float64
	miniBatch, bisecting float64
}{
	{1, 2000, 2, 10, 0.5, 914.8829721464756, 831.2606647332656},
	{2, 2000, 8, 20, 1, 17334.57161318431, 17123.73633165645},
	{3, 2000, 16, 10, 2, 140525.45462866372, 128296.00787748389},
	{4, 2000, 3, 25, 1, 4868.485042251528, 4893.795665061443},
}

func TestOthersAreAsGoodAsScikitLearn(t *testing.T) {
	for _, peer := range otherPeers {
		m := mixture(peer.seed, peer.n, peer.d, peer.clusters, peer.spread)
		for i, tr := range trainers {
			want := []float64{peer.miniBatch, peer.bisecting}[i]
			var mean float64
			for seed := range uint64(10) {
				o := tr.run(t, m, kmeans.Params{K: peer.clusters, Seed: seed + 1}, engine.CheckBroadcasts(false))
				mean += o.model.Inertia / 10
			}
			t.Logf("%s, k=%d: mean inertia %v, scikit-learn's %v, ratio %.4f", tr.name, peer.clusters, mean, want, mean/want)
			require.LessOrEqual(t, mean, 1.03*want)
		}
	}
}

// What the model says of its clusters is what predicting the training rows says, and
// its bits depend on neither parallelism nor batches.
func TestOthersGiveTheSameBits(t *testing.T) {
	points := map[string]data{"iris": iris(t), "wild": wild(400, 3)}
	sparse := wild(300, 6)
	for i := range sparse.x {
		if i%3 != 0 {
			sparse.x[i] = 0
		}
	}
	sparse.sparse = true
	points["sparse"] = sparse
	for name, m := range points {
		for _, tr := range trainers {
			for _, distance := range []kmeans.Distance{kmeans.Euclidean, kmeans.Cosine} {
				if name == "sparse" && distance == kmeans.Cosine {
					continue // has rows of zeros
				}
				t.Run(fmt.Sprintf("%s %s %v", name, tr.name, distance), func(t *testing.T) {
					var first outcome
					for i, at := range placements {
						if at.p > 8 {
							continue
						}
						o := tr.run(t, m, kmeans.Params{K: 5, Distance: distance, MaxIter: 12, Tol: -1, Seed: 3},
							engine.Parallelism(at.p), engine.Workers(at.workers), engine.BatchRows([]int{7, 1024, 1}[i%3]))
						if i == 0 {
							first = o
							sizes, inertia := make([]float64, 5), 0.0
							for j, p := range o.predictions {
								sizes[p.Cluster] += m.weight(j)
								if distance == kmeans.Cosine {
									inertia += m.weight(j) * p.Distance
								} else {
									inertia += m.weight(j) * p.Distance * p.Distance
								}
							}
							require.InDeltaSlice(t, sizes, o.model.Sizes, 1e-9*float64(m.n))
							require.InEpsilon(t, inertia, o.model.Inertia, 1e-9)
							require.Positive(t, o.model.Iterations)
						}
						requireSame(t, first, o)
					}
				})
			}
		}
	}
}
