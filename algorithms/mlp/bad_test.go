package mlp_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/mlp"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

func TestParametersAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(p *mlp.Params)
		want   string
	}{
		{func(p *mlp.Params) { p.LabelCol = "" }, "LabelCol is empty"},
		{func(p *mlp.Params) { p.VectorCol, p.FeatureCols = "a", []string{"b"} }, "both VectorCol and FeatureCols"},
		{func(p *mlp.Params) { p.Task = 4 }, "Task(4)"},
		{func(p *mlp.Params) { p.Activation = 3 }, "Activation(3)"},
		{func(p *mlp.Params) { p.Hidden = []int{3, 0} }, "Hidden[1] is 0"},
		{func(p *mlp.Params) { p.L2 = -1 }, "L2 is -1"},
		{func(p *mlp.Params) { p.L2 = math.NaN() }, "L2 is NaN"},
		{func(p *mlp.Params) { p.Method = optim.Newton }, "want LBFGS, GD or SGD"},
		{func(p *mlp.Params) { p.MaxIter = -1 }, "-1"},
		{func(p *mlp.Params) { p.PredictionCol = "probability" }, `both "probability"`},
	} {
		p := mlp.Params{LabelCol: "label"}
		require.NoError(t, p.Validate())
		c.change(&p)
		require.ErrorContains(t, p.Validate(), c.want)
		fails(t, rings(10), p, "mlp.Train", c.want)
	}
}

func TestRowsAreChecked(t *testing.T) {
	with := func(change func(t *trial.Table)) trial.Table {
		c := rings(20)
		change(&c)
		return c
	}
	fails(t, with(func(t *trial.Table) { t.X[7] = math.NaN() }), regression, `column "features": component 1 is NaN`)
	fails(t, with(func(t *trial.Table) { t.Label[3] = math.Inf(1) }), regression, `column "label"`, "Inf")
	fails(t, with(func(t *trial.Table) { t.Label = make([]float64, t.N) }), classification, `every label in column "label" is "0": a classifier needs two classes or more`)
	fails(t, trial.Table{D: 2, Label: []float64{}}, regression, "no rows")
	p := regression
	p.WeightCol = "weight"
	fails(t, with(func(t *trial.Table) { t.Weight = make([]float64, t.N) }), p, "weight")
	weighted := classification
	weighted.WeightCol = "weight"
	fails(t, with(func(t *trial.Table) { t.Weight = slices.Clone(t.Label) }), weighted, `every row of class "0" weighs 0: leave such rows out`)
	fails(t, with(func(t *trial.Table) {
		for i := range t.X {
			t.X[i] *= 1e-200
		}
	}), regression, `column "features": component 0: the values are so small that their squares underflow: scale them up`)
	fails(t, with(func(t *trial.Table) { t.Weight[2] = -1 }), p, "-1")
	p.WeightCol, p.LabelCol = "", "nothing"
	fails(t, rings(10), p, `"nothing"`)
	p = classification
	p.Hidden = []int{1 << 20, 1 << 20}
	fails(t, rings(20), p, "take fewer units")
	fails(t, with(func(t *trial.Table) { t.X[0] = 1e200 }), regression, "so large", "float64")
}

func TestPredictChecks(t *testing.T) {
	m := train(t, rings(30), classification)
	predict := func(o mlp.PredictOptions, table trial.Table, texts ...string) {
		t.Helper()
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(mlp.Predict(table.Dataset(b), m.Dataset(b), o), "rows")
		}, texts...)
	}
	one := trial.TableOf(nil, []float64{1, math.Inf(1)})
	predict(mlp.PredictOptions{}, one, `row 0 of the shard: column "features": component 1 is +Inf`, "set Skip")
	predict(mlp.PredictOptions{}, trial.TableOf(nil, []float64{1}), "has 1 components, the model was trained on 2")
	predict(mlp.PredictOptions{VectorCol: "x"}, one, `"x"`)
	predict(mlp.PredictOptions{VectorCol: "x", FeatureCols: []string{"id"}}, one, "both VectorCol and FeatureCols")
	predict(mlp.PredictOptions{PredictionCol: "id"}, one, `"id" exists already`)
	trial.Fails(t, func(b *engine.Builder) { mlp.Predict(one.Dataset(b), nil, mlp.PredictOptions{}) }, "the model is nil")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(mlp.Predict(one.Dataset(b), operators.Select(m.Dataset(b), "model"), mlp.PredictOptions{}), "rows")
	}, "the model is a classification, and its dataset is of the other kind")
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(mlp.Predict(one.Dataset(b), m.Dataset(b), mlp.PredictOptions{Skip: true}), "rows")
	})
	recs, err := arrowbridge.Records(r, "rows")
	require.NoError(t, err)
	require.True(t, recs[0].Column(2).IsNull(0))
	require.True(t, recs[0].Column(3).IsNull(0))

	require.Equal(t, -1.0, m.Predict([]float64{1}))
	require.Equal(t, -1.0, m.PredictSparse([]int32{1, 1}, []float64{1, 1}))
	require.Equal(t, -1.0, m.PredictSparse([]int32{2}, []float64{1}))
	require.Equal(t, -1.0, m.PredictSparse([]int32{0}, nil))
	require.False(t, m.PredictProbability([]float64{1}, make([]float64, 2)))
	require.False(t, m.PredictProbability([]float64{1, 2}, make([]float64, 3)))
	require.True(t, math.IsNaN(train(t, rings(30), regression).Predict([]float64{1})))
}
