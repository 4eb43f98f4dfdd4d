package fm_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/fm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

func TestParametersAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(p *fm.Params)
		want   string
	}{
		{func(p *fm.Params) { p.LabelCol = "" }, "LabelCol is empty"},
		{func(p *fm.Params) { p.VectorCol, p.FeatureCols = "a", []string{"b"} }, "both VectorCol and FeatureCols"},
		{func(p *fm.Params) { p.Task = 4 }, "Task(4)"},
		{func(p *fm.Params) { p.Factors = 1 << 20 }, "Factors is 1048576"},
		{func(p *fm.Params) { p.L2 = -1 }, "L2 is -1"},
		{func(p *fm.Params) { p.L2Factors = math.NaN() }, "L2Factors is NaN"},
		{func(p *fm.Params) { p.InitialSpread = math.Inf(1) }, "InitialSpread is +Inf"},
		{func(p *fm.Params) { p.Method = optim.Newton }, "want LBFGS, GD or SGD"},
		{func(p *fm.Params) { p.MaxIter = -1 }, "-1"},
		{func(p *fm.Params) { p.PredictionCol = "probability" }, `both "probability"`},
	} {
		p := fm.Params{LabelCol: "label"}
		require.NoError(t, p.Validate())
		c.change(&p)
		require.ErrorContains(t, p.Validate(), c.want)
		fails(t, products(10, false), p, "fm.Train", c.want)
	}
}

// TestBoolsAreNumbers requires that training and prediction accept a column of bools, which
// count as 0 and 1.
func TestBoolsAreNumbers(t *testing.T) {
	type row struct {
		B     bool
		X     float64
		Label float64
	}
	r := trial.Run(t, func(b *engine.Builder) {
		d := operators.FromSlice(b, []row{{true, 1, 3}, {false, 2, 1}, {true, 0, 2}, {false, 1, 0}})
		p := fm.Params{FeatureCols: []string{"b", "x"}, LabelCol: "label", MaxIter: 2}
		engine.Collect(fm.Predict(d, fm.Train(d, p), fm.PredictOptions{}), "predictions")
	})
	predictions, err := engine.Rows[struct{ Prediction float64 }](r, "predictions")
	require.NoError(t, err)
	require.Len(t, predictions, 4)
}

func TestRowsAreChecked(t *testing.T) {
	with := func(change func(t *trial.Table)) trial.Table {
		c := products(20, true)
		change(&c)
		return c
	}
	fails(t, with(func(t *trial.Table) { t.X[7] = math.NaN() }), regression, `column "features": component 1 is NaN`)
	fails(t, with(func(t *trial.Table) { t.Label[3] = math.Inf(1) }), regression, `column "label"`, "Inf")
	fails(t, with(func(t *trial.Table) { t.Label[3] = 2 }), classification, `column "label" has 3 classes: a factorisation machine takes two`)
	fails(t, with(func(t *trial.Table) { t.Label = make([]float64, t.N) }), classification, `every label in column "label" is "0": a classifier needs two classes or more`)
	fails(t, trial.Table{D: 2, Label: []float64{}}, regression, "no rows")
	p := regression
	p.WeightCol = "weight"
	fails(t, with(func(t *trial.Table) { t.Weight = make([]float64, t.N) }), p, "weight")
	weighted := classification
	weighted.WeightCol = "weight"
	fails(t, with(func(t *trial.Table) {
		t.Weight = make([]float64, t.N)
		for i := range t.Weight {
			t.Label[i] = float64(i % 2)
			t.Weight[i] = t.Label[i]
		}
	}), weighted, `every row of class "0" weighs 0: leave such rows out`)
	fails(t, with(func(t *trial.Table) { t.Weight[2] = -1 }), p, "-1")
	p.WeightCol, p.LabelCol = "", "nothing"
	fails(t, products(10, false), p, `"nothing"`)
	p = classification
	p.Factors = 60000
	fails(t, trial.Table{N: 2, D: 3000, X: make([]float64, 6000), Label: []float64{0, 1}}, p, "take fewer factors")
	fails(t, with(func(t *trial.Table) { t.X[0] = 1e200 }), regression, "so large", "float64")
}

func TestPredictChecks(t *testing.T) {
	m := train(t, products(30, true), classification)
	predict := func(o fm.PredictOptions, table trial.Table, texts ...string) {
		t.Helper()
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(fm.Predict(table.Dataset(b), m.Dataset(b), o), "rows")
		}, texts...)
	}
	one := trial.TableOf(nil, []float64{1, 2, math.Inf(1)})
	predict(fm.PredictOptions{}, one, `row 0 of the shard: column "features": component 2 is +Inf`, "set Skip")
	predict(fm.PredictOptions{}, trial.TableOf(nil, []float64{1}), "has 1 components, the model was trained on 3")
	predict(fm.PredictOptions{VectorCol: "x"}, one, `"x"`)
	predict(fm.PredictOptions{VectorCol: "x", FeatureCols: []string{"id"}}, one, "both VectorCol and FeatureCols")
	predict(fm.PredictOptions{PredictionCol: "id"}, one, `"id" exists already`)
	predict(fm.PredictOptions{}, trial.TableOf(nil, []float64{1e300, 1e300, 0}), "so large")
	trial.Fails(t, func(b *engine.Builder) { fm.Predict(one.Dataset(b), nil, fm.PredictOptions{}) }, "the model is nil")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(fm.Predict(one.Dataset(b), operators.Select(m.Dataset(b), "model"), fm.PredictOptions{}), "rows")
	}, "the model is a classification, and its dataset is of the other kind")
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(fm.Predict(one.Dataset(b), m.Dataset(b), fm.PredictOptions{Skip: true}), "rows")
	})
	recs, err := arrowbridge.Records(r, "rows")
	require.NoError(t, err)
	require.True(t, recs[0].Column(2).IsNull(0))
	require.True(t, recs[0].Column(3).IsNull(0))

	require.Equal(t, -1.0, m.Predict([]float64{1}))
	require.False(t, m.PredictProbability([]float64{1}, make([]float64, 2)))
	require.False(t, m.PredictProbability([]float64{1, 2, 3}, make([]float64, 3)))
	require.True(t, math.IsNaN(m.Margin([]float64{1})))
	require.True(t, math.IsNaN(m.MarginSparse([]int32{1, 1}, []float64{1, 1})))
	require.True(t, math.IsNaN(m.MarginSparse([]int32{3}, []float64{1})))
	require.True(t, math.IsNaN(m.MarginSparse([]int32{0}, nil)))
}
