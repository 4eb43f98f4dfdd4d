package naivebayes_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

func TestParametersAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(p *naivebayes.Params)
		want   string
	}{
		{func(p *naivebayes.Params) { p.LabelCol = "" }, "LabelCol is empty"},
		{func(p *naivebayes.Params) { p.VectorCol, p.FeatureCols = "a", []string{"b"} }, "both VectorCol and FeatureCols"},
		{func(p *naivebayes.Params) { p.Family = 4 }, "Family(4)"},
		{func(p *naivebayes.Params) { p.Smoothing = -1 }, "Smoothing is -1"},
		{func(p *naivebayes.Params) { p.VarSmoothing = math.NaN() }, "VarSmoothing is NaN"},
		{func(p *naivebayes.Params) { p.Binarize = math.Inf(1); p.Family = naivebayes.Bernoulli }, "Binarize is +Inf"},
		{func(p *naivebayes.Params) { p.Binarize = 1 }, "Binarize is for Bernoulli, and Family is gaussian"},
		{func(p *naivebayes.Params) { p.Priors, p.UniformPriors = map[string]float64{"0": 1}, true }, "choose one"},
		{func(p *naivebayes.Params) { p.Priors = map[string]float64{"0": 0.5} }, "sum to 0.5"},
		{func(p *naivebayes.Params) { p.Priors = map[string]float64{"0": -1} }, `Priors of "0" is -1`},
		{func(p *naivebayes.Params) { p.PredictionCol = "probability" }, `both "probability"`},
	} {
		p := naivebayes.Params{LabelCol: "label"}
		require.NoError(t, p.Validate())
		c.change(&p)
		require.ErrorContains(t, p.Validate(), c.want)
		fails(t, small(), p, "naivebayes.Train", c.want)
	}
}

func TestRowsAreChecked(t *testing.T) {
	with := func(change func(t *trial.Table)) trial.Table {
		c := small()
		change(&c)
		return c
	}
	p := of(naivebayes.Gaussian)
	counting := of(naivebayes.Multinomial)
	fails(t, with(func(t *trial.Table) { t.X[7] = math.NaN() }), p, `column "features": component 1 is NaN`)
	fails(t, with(func(t *trial.Table) { t.Label[3] = math.NaN() }), p, `column "label": the label is NaN`)
	fails(t, with(func(t *trial.Table) { t.X[7] = -2 }), counting, "feature 1 is -2", "numbers of 0 or more", "row ")
	fails(t, with(func(t *trial.Table) { t.X[7] = -2; t.Sparse = true }), of(naivebayes.Complement), "feature 1 is -2")
	p.WeightCol = "weight"
	fails(t, with(func(t *trial.Table) { t.Weight = make([]float64, t.N) }), p, "weight")
	fails(t, with(func(t *trial.Table) {
		for i, y := range t.Label {
			if y == 1 {
				t.Weight[i] = 0
			}
		}
	}), p, `every row of class "1" weighs 0: leave such rows out, or give some a weight`)
	fails(t, with(func(t *trial.Table) { t.X[0] = 1e308; t.X[6] = 1e308 }), of(naivebayes.Multinomial), "float64")
	fails(t, trial.Table{D: 2, Label: []float64{}}, of(naivebayes.Gaussian), "no rows")
	p = of(naivebayes.Bernoulli)
	p.Binarize = -1
	fails(t, with(func(t *trial.Table) { t.Sparse = true }), p, `column "features" is sparse and Binarize is -1`)
	p = of(naivebayes.Gaussian)
	p.Priors = map[string]float64{"0": 0.5, "1": 0.5}
	fails(t, small(), p, "there are 2 Priors for 3 classes")
	p.Priors = map[string]float64{"0": 0.5, "1": 0.25, "3": 0.25}
	fails(t, small(), p, `the class "2" has no prior`)
	p = of(naivebayes.Gaussian)
	p.LabelCol = "nothing"
	fails(t, small(), p, `"nothing"`)
	p.LabelCol = "features"
	fails(t, small(), p, "naivebayes.Train", "features")
	require.NoError(t, naivebayes.Affordable(10, 1_000_000))
	require.ErrorContains(t, naivebayes.Affordable(100, 1_000_000), "1526 MB, at most 1024 MB are allowed: hash the features into fewer")
}

func TestPredictChecks(t *testing.T) {
	m := train(t, small(), of(naivebayes.Gaussian))
	predict := func(o naivebayes.PredictOptions, table trial.Table, texts ...string) {
		t.Helper()
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(naivebayes.Predict(table.Dataset(b), m.Dataset(b), o), "rows")
		}, texts...)
	}
	row := []float64{1, 2, 3, 0, 1, math.Inf(1)}
	one := trial.TableOf(nil, row)
	predict(naivebayes.PredictOptions{}, one, `row 0 of the shard: column "features": component 5 is +Inf`, "set Skip")
	predict(naivebayes.PredictOptions{}, trial.TableOf(nil, []float64{1}), "has 1 components, the model was trained on 6")
	predict(naivebayes.PredictOptions{}, trial.Table{N: 1, D: 2, X: []float64{1, 2}, Sparse: true}, "has 2 components, the model was trained on 6")
	predict(naivebayes.PredictOptions{VectorCol: "x"}, one, `"x"`)
	predict(naivebayes.PredictOptions{VectorCol: "id"}, one, `column "id" is an integer`)
	predict(naivebayes.PredictOptions{FeatureCols: []string{"id"}}, one, "the columns have 1 components")
	predict(naivebayes.PredictOptions{VectorCol: "x", FeatureCols: []string{"id"}}, one, "both VectorCol and FeatureCols")
	predict(naivebayes.PredictOptions{PredictionCol: "id"}, one, `"id" exists already`)
	trial.Fails(t, func(b *engine.Builder) { naivebayes.Predict(one.Dataset(b), nil, naivebayes.PredictOptions{}) }, "the model is nil")
	trial.Fails(t, func(b *engine.Builder) {
		naivebayes.Predict(one.Dataset(b), operators.Select(m.Dataset(b), "model"), naivebayes.PredictOptions{})
	}, `no column "label"`)

	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(naivebayes.Predict(one.Dataset(b), m.Dataset(b), naivebayes.PredictOptions{Skip: true}), "rows")
	})
	recs, err := arrowbridge.Records(r, "rows")
	require.NoError(t, err)
	require.True(t, recs[0].Column(2).IsNull(0))
	require.True(t, recs[0].Column(3).IsNull(0))

	require.Equal(t, -1, m.Predict([]float64{1}))
	require.Equal(t, -1, m.Predict([]float64{1, 2, 3, 4, 5, math.NaN()}))
	require.Equal(t, -1, m.PredictSparse([]int32{1, 1}, []float64{1, 1}))
	require.Equal(t, -1, m.PredictSparse([]int32{6}, []float64{1}))
	require.Equal(t, -1, m.PredictSparse([]int32{0}, nil))
	require.False(t, m.PredictProbability(small().Row(0), make([]float64, 2)))
}
