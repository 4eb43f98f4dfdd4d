package gmm_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gmm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

func TestParametersAreChecked(t *testing.T) {
	start := train(t, blobs(1, 50, 2, 2), gmm.Params{K: 2})
	for _, c := range []struct {
		p    gmm.Params
		want string
	}{
		{gmm.Params{}, "K is 0"},
		{gmm.Params{K: -1}, "K is -1"},
		{gmm.Params{K: 1, VectorCol: "a", FeatureCols: []string{"b"}}, "both VectorCol and FeatureCols"},
		{gmm.Params{K: 1, PredictionCol: "probabilities"}, `PredictionCol and ProbabilityCol are both "probabilities"`},
		{gmm.Params{K: 1, FeatureCols: []string{"a", "b"}, PredictionCol: "b"}, `column "b" is read`},
		{gmm.Params{K: 1, VectorCol: "a", ProbabilityCol: "a"}, `column "a" is read`},
		{gmm.Params{K: 1, Covariance: 7}, "Covariance(7)"},
		{gmm.Params{K: 1, MaxIter: -1}, "MaxIter is -1"},
		{gmm.Params{K: 1, Tol: math.NaN()}, "Tol is NaN"},
		{gmm.Params{K: 1, Regularization: math.Inf(1)}, "Regularization is +Inf"},
		{gmm.Params{K: 1, Restarts: -1}, "Restarts is -1"},
		{gmm.Params{K: 1, Restarts: 2, ComponentCol: "c"}, "every restart would be the same"},
		{gmm.Params{K: 2, Means: [][]float64{{1}}}, "there are 1 Means but K is 2"},
		{gmm.Params{Means: [][]float64{{1}, {1, 2}}}, "Means[1] has 2 components"},
		{gmm.Params{Means: [][]float64{{math.NaN()}}}, "Means[0][0] is NaN"},
		{gmm.Params{Means: [][]float64{{1}}, ComponentCol: "c"}, "more than one is set"},
		{gmm.Params{Start: start, K: 3}, "Start has 2 components"},
		{gmm.Params{Start: start, Covariance: gmm.Tied}, "Start has full covariances"},
		{gmm.Params{Start: &gmm.Model{}}, "Start: dim is 0"},
	} {
		require.ErrorContains(t, c.p.Validate(), c.want)
		fails(t, blobs(1, 20, 2, 2), c.p, "gmm.Train", c.want)
	}
	require.NoError(t, gmm.Params{K: 1}.Validate())
}

func TestRowsAreChecked(t *testing.T) {
	ok := blobs(1, 20, 2, 2)
	with := func(change func(t *trial.Table)) trial.Table {
		c := ok
		c.X = append([]float64(nil), ok.X...)
		change(&c)
		return c
	}
	two := gmm.Params{K: 2}
	fails(t, with(func(t *trial.Table) { t.X[5] = math.NaN() }), two, `column "features": component 1 is NaN`, "Skip")
	fails(t, with(func(t *trial.Table) { t.X[4] = math.Inf(-1) }), two, "component 0 is -Inf")
	fails(t, with(func(t *trial.Table) { t.Sparse = true }), two, `column "features" is sparse`, "dense vectors")
	fails(t, ok, gmm.Params{K: 2, WeightCol: "weights"}, `"weights"`)
	fails(t, ok, gmm.Params{K: 2, Means: [][]float64{{1}, {2}}}, "the points have 2 components, the given means have 1")
	fails(t, trial.Table{D: 2}, two, "no rows")
	fails(t, with(func(t *trial.Table) { t.N, t.X = 1, t.X[:2] }), two, "2 clusters are more than the 1 distinct point")
	zero := with(func(t *trial.Table) { t.Weight = make([]float64, t.N) })
	fails(t, zero, gmm.Params{K: 2, WeightCol: "weight"}, "weight")
	fails(t, with(func(t *trial.Table) { t.Weight = make([]float64, t.N); t.Weight[3] = -1 }), gmm.Params{K: 2, WeightCol: "weight"}, "weight", "-1")
	fails(t, ok, gmm.Params{K: 2, Means: [][]float64{{0, 0}, {1e9, 0}}}, "component 1 begins without rows")
	for _, label := range []float64{2, -1, 0.5} {
		fails(t, with(func(t *trial.Table) { t.Label = make([]float64, t.N); t.Label[3] = label }),
			gmm.Params{K: 2, ComponentCol: "label"}, `column "label"`, "want an integer from 0 to 1")
	}
	fails(t, with(func(t *trial.Table) { t.X[0] = 1e200 }), gmm.Params{K: 1}, "float64")
	start := train(t, blobs(1, 50, 3, 2), gmm.Params{K: 2})
	fails(t, ok, gmm.Params{Start: start}, "the points have 2 components, Start has 3")
	fails(t, trial.Table{N: 1, D: 20000, X: make([]float64, 20000)}, gmm.Params{K: 1}, "diagonal covariances")

	// Skipped rows do not change the model.
	bad := with(func(t *trial.Table) { t.X, t.N = append(t.X, math.NaN(), 1), t.N+1 })
	require.Equal(t, train(t, ok, gmm.Params{K: 1}).Means, train(t, bad, gmm.Params{K: 1, Skip: true}).Means)
}

func TestPredictChecks(t *testing.T) {
	m := train(t, blobs(1, 50, 2, 2), gmm.Params{K: 2})
	predict := func(o gmm.PredictOptions, table trial.Table, texts ...string) {
		t.Helper()
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(gmm.Predict(table.Dataset(b), m.Dataset(b), o), "rows")
		}, texts...)
	}
	two := trial.TableOf(nil, []float64{1, math.NaN()})
	predict(gmm.PredictOptions{}, two, `row 0 of the shard: column "features": component 1 is NaN`, "set Skip")
	predict(gmm.PredictOptions{}, trial.TableOf(nil, []float64{1}), "has 1 components, the model was trained on 2")
	predict(gmm.PredictOptions{VectorCol: "point"}, two, `"point"`)
	predict(gmm.PredictOptions{VectorCol: "id"}, two, `column "id" is an integer, the model reads a vector of 2`)
	predict(gmm.PredictOptions{ComponentCol: "id"}, two, `"id" exists already`)
	predict(gmm.PredictOptions{}, trial.Table{N: 1, D: 3, X: []float64{1, 2, 3}, Sparse: true}, "has 3 components, the model was trained on 2")
	predict(gmm.PredictOptions{VectorCol: "features", FeatureCols: []string{"id"}}, two, "both VectorCol and FeatureCols")
	predict(gmm.PredictOptions{FeatureCols: []string{"id"}}, two, "the columns have 1 components")
	predict(gmm.PredictOptions{}, trial.TableOf(nil, []float64{1e300, -1e300}), "too far from every component")
	trial.Fails(t, func(b *engine.Builder) { gmm.Predict(two.Dataset(b), nil, gmm.PredictOptions{}) }, "the model is nil")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(gmm.Predict(operators.Rename(two.Dataset(b), "features", "f"), m.Dataset(b), gmm.PredictOptions{}), "rows")
	}, `no column "features"`)

	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(gmm.Predict(two.Dataset(b), m.Dataset(b), gmm.PredictOptions{Skip: true, DensityCol: "density"}), "rows")
	})
	recs, err := arrowbridge.Records(r, "rows")
	require.NoError(t, err)
	for c := 2; c < 5; c++ {
		require.True(t, recs[0].Column(c).IsNull(0))
	}
}

// TestTheStartNamesTheColumns requires that errors in rows name the user's columns, also if
// k-means, which computes the initial components, finds the errors first.
func TestTheStartNamesTheColumns(t *testing.T) {
	type point struct {
		At     []float64 `column:"at"`
		Vector float64   `column:"vector"`
		Weight []float64 `column:"weight"`
	}
	points := func(weight float64, size int) []point {
		var all []point
		for i := range 30 {
			x := []float64{float64(i % 2 * 100), float64(i % 3)}
			all = append(all, point{x, weight, x})
		}
		all[17].At, all[17].Weight = all[17].At[:size], all[17].Weight[:size]
		return all
	}
	for _, p := range []gmm.Params{
		{K: 2, VectorCol: "at"}, {K: 2, VectorCol: "at", WeightCol: "vector"}, {K: 2, VectorCol: "weight", WeightCol: "vector"},
	} {
		fails := func(rows []point, text string) {
			err := trial.Fails(t, func(b *engine.Builder) {
				engine.Collect(gmm.Train(operators.FromSlice(b, rows), p), "model")
			}, text)
			if p.WeightCol == "" {
				require.NotContains(t, err.Error(), `column "vector"`)
			}
		}
		fails(points(1, 1), `column "`+p.VectorCol+`" has `)
		if p.WeightCol != "" {
			fails(points(1e307, 2), `column "vector"`)
		}
	}
}
