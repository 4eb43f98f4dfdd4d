package kmeans_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

// trainer is TrainMiniBatch or TrainBisecting, with its parameters.
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

// run trains on m and predicts the rows of m.
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

// otherPeers has mean inertias of scikit-learn 1.9.1 over 10 seeds (random_state 0 to 9) for
// the points that mixture returns. The trainings are MiniBatchKMeans(k, init="k-means++",
// n_init=1, batch_size=256, max_iter=100) and BisectingKMeans(k, init="k-means++", n_init=3).
// The inertias were computed from predictions for the points.
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
	for _, peer := range otherPeers[:min(mostPeers, len(otherPeers))] {
		m := mixture(peer.seed, peer.n, peer.d, peer.clusters, peer.spread)
		for i, tr := range trainers {
			want := []float64{peer.miniBatch, peer.bisecting}[i]
			var mean float64
			for seed := range uint64(5) {
				o := tr.run(t, m, kmeans.Params{K: peer.clusters, Seed: seed + 1}, engine.CheckBroadcasts(false))
				mean += o.model.Inertia / 5
			}
			t.Logf("%s, k=%d: mean inertia %v, scikit-learn's %v, ratio %.4f", tr.name, peer.clusters, mean, want, mean/want)
			require.LessOrEqual(t, mean, 1.03*want)
		}
	}
}

// TestOthersGiveTheSameBits requires that a model has the sizes and the inertia that
// predictions for the training rows give, and that the bits of the model depend on neither
// parallelism nor batches.
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
					continue // the data has rows of zeros, which have no direction
				}
				t.Run(fmt.Sprintf("%s %s %v", name, tr.name, distance), func(t *testing.T) {
					var first outcome
					among := placements
					if distance == kmeans.Cosine {
						among = fewPlacements
					}
					for i, at := range among {
						if at.p > 8 {
							continue
						}
						o := tr.run(t, m, kmeans.Params{K: 5, Distance: distance, MaxIter: 12, Tol: -1, Seed: 3},
							engine.Parallelism(at.p), engine.Workers(at.workers), engine.BatchRows([]int{7, 1024, 1}[i%3]), engine.CheckState(i%2 == 1))
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
					for _, options := range trial.Cuts(12) {
						requireSame(t, first, tr.run(t, m, kmeans.Params{K: 5, Distance: distance, MaxIter: 12, Tol: -1, Seed: 3}, options...))
					}
				})
			}
		}
	}
}

func TestOthersTellWhatIsWrong(t *testing.T) {
	good := kmeans.Params{VectorCol: "x", K: 2}
	given := kmeans.Params{VectorCol: "x", Init: kmeans.Given, Centers: [][]float64{{1}}}
	single := good
	single.Precision = kmeans.Single
	for want, p := range map[string]interface{ Validate() error }{
		"VectorCol is empty: name the column of the points\nK is 0: want at least 1 cluster": kmeans.MiniBatchParams{},
		"BatchSize is -1: want 1 to 2147483647, or 0 for 1024":                               kmeans.MiniBatchParams{Params: good, BatchSize: -1},
		"Precision is single: mini-batches compute in double precision":                      kmeans.MiniBatchParams{Params: single},
		"K is -2: want at least 1 cluster":                                                   kmeans.BisectingParams{Params: kmeans.Params{VectorCol: "x", K: -2}},
		"Init is given: bisecting draws its first centres itself":                            kmeans.BisectingParams{Params: given},
		"Trials is -1: want 1 to 32767, or 0 for 3":                                          kmeans.BisectingParams{Params: good, Trials: -1},
		"Split(7) is not one of the package's constants":                                     kmeans.BisectingParams{Params: good, Split: 7},
		"Precision is single: bisections compute in double precision":                        kmeans.BisectingParams{Params: single},
	} {
		require.EqualError(t, p.Validate(), want)
	}
	require.NoError(t, kmeans.MiniBatchParams{Params: given, Patience: -1}.Validate())
	require.NoError(t, kmeans.BisectingParams{Params: good, Split: kmeans.LargestSize}.Validate())
	var s kmeans.Split
	require.NoError(t, s.UnmarshalText([]byte("largest size")))
	require.Equal(t, kmeans.LargestSize, s)
	text, err := s.MarshalText()
	require.NoError(t, err)
	require.Equal(t, "largest size", string(text))

	for _, c := range []struct {
		build func(rows *engine.Dataset)
		want  []string
	}{
		{func(rows *engine.Dataset) { kmeans.TrainMiniBatch(rows, kmeans.MiniBatchParams{}) }, []string{"others_test.go:", "kmeans.TrainMiniBatch: VectorCol is empty"}},
		{func(rows *engine.Dataset) { kmeans.TrainBisecting(rows, kmeans.BisectingParams{}) }, []string{"others_test.go:", "kmeans.TrainBisecting: VectorCol is empty"}},
		{func(rows *engine.Dataset) {
			kmeans.TrainBisecting(rows, kmeans.BisectingParams{Params: kmeans.Params{VectorCol: "feature", K: 2}})
		}, []string{`did you mean "features"`}},
		{func(*engine.Dataset) { kmeans.TrainMiniBatch(nil, kmeans.MiniBatchParams{}) }, []string{"kmeans.TrainMiniBatch: the dataset is nil"}},
		{func(*engine.Dataset) { kmeans.TrainBisecting(nil, kmeans.BisectingParams{}) }, []string{"kmeans.TrainBisecting: the dataset is nil"}},
	} {
		got := built(t, func(_ *engine.Builder, rows *engine.Dataset) { c.build(rows) })
		for _, want := range c.want {
			require.Contains(t, got, want)
		}
	}

	nan := math.NaN()
	weightless := rowsOf([]float64{1}, []float64{2})
	weightless.w = []float64{0, 0}
	for _, tr := range trainers {
		for _, c := range []struct {
			m    data
			p    kmeans.Params
			want string
		}{
			{data{d: 2}, kmeans.Params{K: 2}, "there are no rows to cluster"},
			{rowsOf([]float64{nan}), kmeans.Params{K: 2}, "component 0 is NaN"},
			{weightless, kmeans.Params{K: 2}, `every weight in column "weight" is 0`},
			{rowsOf([]float64{1e200}, []float64{-1e200}, []float64{3e200}), kmeans.Params{K: 2}, "exceed the range of float64"},
			{rowsOf([]float64{1}, []float64{2}, []float64{1}), kmeans.Params{K: 3}, "3 clusters are more than the 2 distinct points"},
			{rowsOf([]float64{1, 1}, []float64{3, 3}), kmeans.Params{K: 2, Distance: kmeans.Cosine}, "2 clusters are more than the 1 distinct direction"},
		} {
			_, err := tr.try(t, c.m, c.p)
			require.ErrorContains(t, err, c.want, tr.name)
		}
	}
}

func TestOthersOnFewRows(t *testing.T) {
	for _, tr := range trainers {
		one := tr.run(t, rowsOf([]float64{3, -4}), kmeans.Params{K: 1}, engine.Parallelism(8))
		require.Equal(t, [][]float64{{3, -4}}, one.model.Centers)
		require.Zero(t, one.model.Inertia)
		m := rowsOf([]float64{0, 0}, []float64{0, 2}, []float64{9, 9}, []float64{9, 9})
		three := tr.run(t, m, kmeans.Params{K: 3}, engine.Parallelism(8))
		require.ElementsMatch(t, [][]float64{{0, 0}, {0, 2}, {9, 9}}, three.model.Centers)
		require.Zero(t, three.model.Inertia)
	}
	// A row without weight gets a cluster but does not influence the centres.
	m := rowsOf([]float64{0}, []float64{1}, []float64{10}, []float64{11}, []float64{1e6})
	m.w = []float64{1, 1, 1, 1, 0}
	for _, tr := range trainers {
		o := tr.run(t, m, kmeans.Params{K: 2, Tol: -1, MaxIter: 500})
		require.Equal(t, []float64{2, 2}, o.model.Sizes)
		require.InDelta(t, 1, o.model.Inertia, 0.1)
	}
}

// TestBisectionIsTwoMeans requires that one bisection gives the optimal clusters of k-means
// with two centres.
func TestBisectionIsTwoMeans(t *testing.T) {
	m := mixture(3, 500, 3, 2, 0.5)
	o := trainers[1].run(t, m, kmeans.Params{K: 2, Tol: -1})
	centers, near, inertia := referenceLloyd(m, o.model.Centers, 100, 0)
	requireCenters(t, centers, o.model.Centers)
	require.InEpsilon(t, inertia, o.model.Inertia, 1e-12)
	for i, p := range o.predictions {
		require.Equal(t, int64(near[i]), p.Cluster)
	}
}

// TestWhichClusterIsCut uses a dense cluster and two points far from it and from each other.
// With LargestSize the dense cluster must be cut.
func TestWhichClusterIsCut(t *testing.T) {
	m := mixture(8, 400, 1, 1, 0.01)
	m.x[0], m.x[1] = 1e6, 2e6
	bisect := func(split kmeans.Split) []float64 {
		tr := trainers[1]
		tr.train = func(points *engine.Dataset, p kmeans.Params) *engine.Dataset {
			return kmeans.TrainBisecting(points, kmeans.BisectingParams{Params: p, Split: split})
		}
		return tr.run(t, m, kmeans.Params{K: 3}).model.Sizes
	}
	require.ElementsMatch(t, []float64{398, 1, 1}, bisect(kmeans.LargestInertia))
	sizes := bisect(kmeans.LargestSize)
	require.Less(t, slices.Max(sizes), 399.0)
	require.Less(t, slices.Min(sizes), 3.0)
}

// TestMiniBatchesEnd requires that training by mini-batches ends by Patience, by Tol, or by the
// number of batches.
func TestMiniBatchesEnd(t *testing.T) {
	m := mixture(5, 2000, 2, 5, 0.5)
	batches := func(p kmeans.MiniBatchParams) *kmeans.Model {
		tr := trainers[0]
		tr.train = func(points *engine.Dataset, own kmeans.Params) *engine.Dataset {
			p.Params = own
			return kmeans.TrainMiniBatch(points, p)
		}
		return tr.run(t, m, p.Params).model
	}
	all := batches(kmeans.MiniBatchParams{Params: kmeans.Params{K: 5, MaxIter: 60, Tol: -1}, BatchSize: 100, Patience: -1})
	require.Equal(t, 60, all.Iterations)
	require.False(t, all.Converged)
	patient := batches(kmeans.MiniBatchParams{Params: kmeans.Params{K: 5, MaxIter: 900, Tol: -1}, BatchSize: 100})
	require.Less(t, patient.Iterations, 900)
	require.True(t, patient.Converged)
	loose := batches(kmeans.MiniBatchParams{Params: kmeans.Params{K: 5, Tol: 100}})
	require.Equal(t, 1, loose.Iterations)
	require.True(t, loose.Converged)
}
