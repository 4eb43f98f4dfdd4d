package gbdt_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

func TestParametersAreChecked(t *testing.T) {
	nan := math.NaN()
	table := made(31, 20, 3)
	for _, c := range []struct {
		change func(p *gbdt.Params)
		want   string
	}{
		{func(p *gbdt.Params) { p.LabelCol = "" }, "LabelCol is empty"},
		{func(p *gbdt.Params) { p.VectorCol, p.FeatureCols = "a", []string{"b"} }, "both VectorCol and FeatureCols"},
		{func(p *gbdt.Params) { p.CategoricalCols = []string{"b"} }, "which FeatureCols has not"},
		{func(p *gbdt.Params) { p.CategoricalAt = []int{-1} }, "CategoricalAt has -1"},
		{func(p *gbdt.Params) { p.LabelUpperCol = "u" }, "LabelUpperCol is for AFT"},
		{func(p *gbdt.Params) { p.GroupCol = "g" }, "GroupCol is for LambdaMART"},
		{func(p *gbdt.Params) { p.Objective = gbdt.LambdaMART }, "GroupCol is empty"},
		{func(p *gbdt.Params) { p.ProbabilityCol = "prediction" }, `both "prediction"`},
		{func(p *gbdt.Params) { p.Objective = 99 }, "Objective(99) is not one"},
		{func(p *gbdt.Params) { p.Objective = gbdt.Custom }, "go together"},
		{func(p *gbdt.Params) { p.CustomObjective = &gbdt.CustomObjective{} }, "Gradients is nil"},
		{func(p *gbdt.Params) { p.QuantileAt = 1 }, "QuantileAt is 1"},
		{func(p *gbdt.Params) { p.HuberDelta = nan }, "HuberDelta is NaN"},
		{func(p *gbdt.Params) { p.TweediePower = 2 }, "TweediePower is 2"},
		{func(p *gbdt.Params) { p.Time = 7 }, "Distribution(7) is not one"},
		{func(p *gbdt.Params) { p.TimeScale = -1 }, "TimeScale is -1"},
		{func(p *gbdt.Params) { p.RankTruncation = -1 }, "RankTruncation is -1"},
		{func(p *gbdt.Params) { p.Base = []float64{nan} }, "Base[0] is NaN"},
		{func(p *gbdt.Params) { p.Base, p.MarginCols = []float64{1}, []string{"m"} }, "both Base and MarginCols"},
		{func(p *gbdt.Params) { p.ScalePosWeight = 2 }, "ScalePosWeight is for Logistic"},
		{func(p *gbdt.Params) { p.Balanced = true }, "class weights are for Logistic and Softmax"},
		{func(p *gbdt.Params) { p.Objective, p.Balanced, p.ScalePosWeight = gbdt.Logistic, true, 2 }, "choose one"},
		{func(p *gbdt.Params) { p.Objective, p.ClassWeights = gbdt.Logistic, map[string]float64{"a": 0} }, `ClassWeights of "a" is 0`},
		{func(p *gbdt.Params) { p.NumTrees = -1 }, "NumTrees is -1"},
		{func(p *gbdt.Params) { p.LearningRate = math.Inf(1) }, "LearningRate is +Inf"},
		{func(p *gbdt.Params) { p.GrowPolicy = 3 }, "GrowPolicy(3) is not one"},
		{func(p *gbdt.Params) { p.MaxDepth = -2 }, "MaxDepth is -2"},
		{func(p *gbdt.Params) { p.MaxLeaves = 1 }, "MaxLeaves is 1"},
		{func(p *gbdt.Params) { p.MaxBins = 256 }, "MaxBins is 256: want 2 to 255"},
		{func(p *gbdt.Params) { p.MinChildWeight = nan }, "MinChildWeight is NaN"},
		{func(p *gbdt.Params) { p.MinSamplesLeaf = -1 }, "MinSamplesLeaf is -1"},
		{func(p *gbdt.Params) { p.Lambda = nan }, "Lambda is NaN"},
		{func(p *gbdt.Params) { p.Alpha = -1 }, "Alpha is -1"},
		{func(p *gbdt.Params) { p.MinSplitGain = -1 }, "MinSplitGain is -1"},
		{func(p *gbdt.Params) { p.MaxDeltaStep = math.Inf(1) }, "MaxDeltaStep is +Inf"},
		{func(p *gbdt.Params) { p.MaxOneHot = -1 }, "MaxOneHot is -1"},
		{func(p *gbdt.Params) { p.MaxCategories = -1 }, "MaxCategories is -1"},
		{func(p *gbdt.Params) { p.MinCategoryRows = -1 }, "MinCategoryRows is -1"},
		{func(p *gbdt.Params) { p.CategorySmooth = nan }, "CategorySmooth is NaN"},
		{func(p *gbdt.Params) { p.CategoryLambda = nan }, "CategoryLambda is NaN"},
		{func(p *gbdt.Params) { p.Monotone = map[string]int{"f0": 2} }, `Monotone of "f0" is 2`},
		{func(p *gbdt.Params) { p.Monotone = map[string]int{"f3": 1} }, `there is no feature "f3"`},
		{func(p *gbdt.Params) { p.Monotone = map[string]int{"f00": 1} }, `there is no feature "f00"`},
		{func(p *gbdt.Params) { p.Interactions = [][]string{{}} }, "Interactions[0] is empty"},
		{func(p *gbdt.Params) { p.Interactions = [][]string{{"g"}} }, `interaction 0: there is no feature "g"`},
		{func(p *gbdt.Params) { p.Subsample = 1.5 }, "Subsample is 1.5"},
		{func(p *gbdt.Params) { p.GOSS, p.TopRate, p.OtherRate = true, 0.7, 0.4 }, "are more than all rows"},
		{func(p *gbdt.Params) { p.GOSS, p.Subsample = true, 0.5 }, "both GOSS and Subsample"},
		{func(p *gbdt.Params) { p.ColsampleByNode = -1 }, "ColsampleByNode is -1"},
		{func(p *gbdt.Params) { p.DropRate = 2 }, "DropRate is 2"},
		{func(p *gbdt.Params) { p.SkipDrop = nan }, "SkipDrop is NaN"},
		{func(p *gbdt.Params) { p.Metrics = []string{"auc"} }, `metric "auc" does not go with the objective squared`},
		{func(p *gbdt.Params) { p.Metrics = []string{"mae", "mae"} }, `"mae" twice`},
		{func(p *gbdt.Params) { p.CustomMetrics = make([]gbdt.CustomMetric, 1) }, "needs a Name and a Sum"},
		{func(p *gbdt.Params) { p.EarlyStoppingRounds = 3 }, "neither an evaluation set nor a ValidationFraction"},
		{func(p *gbdt.Params) { p.EarlyStoppingTolerance = -1 }, "EarlyStoppingTolerance is -1"},
		{func(p *gbdt.Params) { p.ValidationFraction = 1 }, "ValidationFraction is 1"},
	} {
		p := gbdt.Params{LabelCol: "label"}
		require.NoError(t, p.Validate())
		c.change(&p)
		fails(t, table, p, "gbdt.Train", c.want)
	}
	p := gbdt.Params{LabelCol: "label", ValidationFraction: 0.5}
	for _, c := range []struct {
		sets []gbdt.Set
		want string
	}{{[]gbdt.Set{{}}, "evaluation set 0 has no Rows"}, {[]gbdt.Set{{Name: "validation"}}, "has no Rows"}} {
		trial.Fails(t, func(b *engine.Builder) { gbdt.Train(table.Dataset(b), p, c.sets...) }, c.want)
	}
	for _, name := range []string{"train", "validation", ""} {
		trial.Fails(t, func(b *engine.Builder) {
			gbdt.Train(table.Dataset(b), p, gbdt.Set{Name: name, Rows: table.Dataset(b)})
		}, "evaluation set")
	}
}

// TestPoorFeatures requires that training succeeds on features without information, where every
// tree is a single leaf.
func TestPoorFeatures(t *testing.T) {
	nan := math.NaN()
	p := gbdt.Params{LabelCol: "label", NumTrees: 3}
	for name, x := range map[string][]float64{
		"constant": {5, 5, 5, 5}, "missing": {nan, nan, nan, nan},
	} {
		table := trial.Table{N: 4, D: 1, X: x, Label: []float64{1, 2, 3, 4}}
		m := train(t, table, p)
		for i := range m.Ensemble.Trees {
			require.Len(t, m.Ensemble.Trees[i].Nodes, 1, name)
		}
		require.InDelta(t, 2.5, m.Predict([]float64{7}), 1e-9, name)
	}
	// Feature 0 is missing in half of the rows. A split sends the missing values to one side.
	half := trial.Table{N: 8, D: 1, X: []float64{nan, 1, nan, 1, nan, 1, nan, 1}, Label: []float64{0, 1, 0, 1, 0, 1, 0, 1}}
	p.MinChildWeight, p.Lambda, p.LearningRate = -1, -1, 1
	m := train(t, half, p)
	require.InDelta(t, 0, m.Predict([]float64{nan}), 1e-9)
	require.InDelta(t, 1, m.Predict([]float64{1}), 1e-9)

	one := trial.Table{N: 1, D: 2, X: []float64{1, 2}, Label: []float64{3}}
	require.InDelta(t, 3, train(t, one, p).Predict([]float64{0, 0}), 1e-12)

	// More bins are allowed than there are distinct values, and some values are infinite,
	// beyond all finite thresholds.
	inf := math.Inf(1)
	few := trial.Table{N: 4, D: 1, X: []float64{-inf, 1, 2, inf}, Label: []float64{1, 2, 3, 4}}
	m = train(t, few, p)
	for i, x := range few.X {
		require.InDelta(t, few.Label[i], m.Predict([]float64{x}), 1e-9)
	}
	require.InDelta(t, 4, m.Predict([]float64{1e300}), 1e-9)

	// There is no limit of depth, but no split reaches MinSplitGain, so a tree is a single
	// leaf.
	p.MaxDepth, p.MinSplitGain = -1, 1e300
	require.Len(t, train(t, few, p).Ensemble.Trees[0].Nodes, 1)
}

func TestRowsAreChecked(t *testing.T) {
	with := func(change func(t *trial.Table)) trial.Table {
		c := weighted(labelled(made(32, 24, 3), func(y float64) float64 { return kernelBool(y > 3) }))
		change(&c)
		return c
	}
	p := gbdt.Params{LabelCol: "label", WeightCol: "weight"}
	fails(t, with(func(t *trial.Table) { t.Label[3] = math.NaN() }), p, `"label"`, "NaN", "row ")
	fails(t, with(func(t *trial.Table) { t.Weight[3] = math.NaN() }), p, `"weight"`, "NaN", "row ")
	fails(t, with(func(t *trial.Table) { t.Weight[3] = -1 }), p, `"weight"`, "-1", "row ")
	fails(t, with(func(t *trial.Table) { clear(t.Weight) }), p, "weight")
	fails(t, trial.Table{D: 2, Label: []float64{}}, gbdt.Params{LabelCol: "label"}, "no rows")
	p.Objective = gbdt.Poisson
	fails(t, with(func(t *trial.Table) { t.Label[3] = -2 }), p, "the label is -2: want a number of 0 or more", "row ")
	fails(t, with(func(t *trial.Table) { clear(t.Label) }), p, "the mean 0", "set Base")
	p.Objective = gbdt.Gamma
	fails(t, with(func(*trial.Table) {}), p, "the label is 0: want a number above 0")
	p.Objective = gbdt.Logistic
	fails(t, with(func(t *trial.Table) { t.Label[3] = 2 }), p, "has 3 classes, and the objective logistic takes two: use softmax")
	fails(t, with(func(t *trial.Table) { clear(t.Label) }), p, `every label in column "label" is "0"`)
	fails(t, with(func(t *trial.Table) {
		for i, y := range t.Label {
			t.Weight[i] *= y
		}
	}), p, `every row of class "0" weighs 0: leave such rows out, or give some a weight`)
	p.Objective = gbdt.Softmax
	fails(t, with(func(t *trial.Table) { clear(t.Label) }), p, `every label in column "label" is "0"`)
	p.ClassWeights = map[string]float64{"7": 2}
	fails(t, with(func(*trial.Table) {}), p, `ClassWeights name "7", which is no class of column "label"`)
	p.ClassWeights, p.Base = nil, []float64{1, 2, 3}
	fails(t, with(func(*trial.Table) {}), p, "Base has 3 margins for 2 outputs")
	p.Base, p.LabelCol = nil, "nothing"
	fails(t, with(func(*trial.Table) {}), p, "gbdt.Train", `"nothing"`)
}

// TestEvaluationSetsAreChecked requires that an evaluation set with other columns than the
// training rows is refused when the job is built.
func TestEvaluationSetsAreChecked(t *testing.T) {
	table := labelled(made(33, 24, 3), func(y float64) float64 { return kernelBool(y > 3) })
	for _, c := range []struct {
		set  trial.Table
		o    gbdt.Objective
		want string
	}{
		{made(33, 24, 4), gbdt.Squared, `"features" is vector[4]`},
		{trial.Table{N: 2, D: 3, X: make([]float64, 6)}, gbdt.Squared, `"label"`},
		{trial.Table{N: 2, D: 3, X: make([]float64, 6), Words: []string{"a", "b"}}, gbdt.Logistic, `label`},
		{trial.Table{N: 2, D: 3, X: make([]float64, 6), Label: []float64{1, 2}}, gbdt.Logistic, "2"},
	} {
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(gbdt.Train(table.Dataset(b), gbdt.Params{LabelCol: "label", Objective: c.o}, gbdt.Set{Name: "test", Rows: c.set.Dataset(b)}), "model")
		}, `"test"`, c.want)
	}
}

// TestUnseenCategories requires that a category that training has not seen is treated as a
// missing value in predictions.
func TestUnseenCategories(t *testing.T) {
	type row struct {
		Word  string
		Code  int64
		Label float64
	}
	var rows []row
	for i := range 60 {
		rows = append(rows, row{fmt.Sprintf("w%d", i%6), int64(i % 5), float64(i%6) + 10*float64(i%5)})
	}
	p := gbdt.Params{FeatureCols: []string{"word", "code"}, CategoricalCols: []string{"code"}, LabelCol: "label", NumTrees: 20, LearningRate: 0.5, MinChildWeight: -1, CategoryLambda: -1}
	m := trainRows(t, rows, p)
	require.Less(t, last(m, 0, 0), 1.0)
	require.True(t, math.IsNaN(m.Code(0, "other")))
	require.True(t, math.IsNaN(m.Code(1, "other")))
	missing := m.Predict([]float64{m.Code(0, "w1"), math.NaN()})
	for _, code := range []float64{-1, 5, 77, 1e9, math.Inf(1), math.Inf(-1), -1e300} {
		require.Equal(t, missing, m.Predict([]float64{m.Code(0, "w1"), code}), code)
	}
	p.Monotone = map[string]int{"word": 1}
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(gbdt.Train(operators.FromSlice(b, rows), p), "model")
	}, "bad_test.go", `monotone constraints: feature "word" is categorical: categories have no order`)
	p.Monotone = map[string]int{"word": 0} // 0 means no constraint
	trainRows(t, rows, p)
	p.Monotone = nil
	fails(t, made(37, 20, 3), gbdt.Params{LabelCol: "label", CategoricalAt: []int{2}, Monotone: map[string]int{"f2": -1}},
		"gbdt.Train", `monotone constraints: feature "f2" is categorical`)
	trial.Fails(t, func(b *engine.Builder) {
		bad := append([]row(nil), rows...)
		bad[3].Code = -4
		engine.Collect(gbdt.Train(operators.FromSlice(b, bad), p), "model")
	}, `"code"`, "-4")
}

func TestPredictChecks(t *testing.T) {
	table := made(34, 40, 3)
	m := train(t, table, gbdt.Params{LabelCol: "label", NumTrees: 2})
	predict := func(o gbdt.PredictOptions, table trial.Table, texts ...string) {
		t.Helper()
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(gbdt.Predict(table.Dataset(b), m.Dataset(b), o), "rows")
		}, texts...)
	}
	predict(gbdt.PredictOptions{}, trial.TableOf(nil, []float64{1}), "has 1 components, the model was trained on 3")
	predict(gbdt.PredictOptions{VectorCol: "x"}, table, `"x"`)
	predict(gbdt.PredictOptions{VectorCol: "id"}, table, `column "id"`)
	predict(gbdt.PredictOptions{FeatureCols: []string{"id"}}, table, "FeatureCols has 1 columns")
	predict(gbdt.PredictOptions{VectorCol: "x", FeatureCols: []string{"id"}}, table, "both VectorCol and FeatureCols")
	predict(gbdt.PredictOptions{PredictionCol: "id"}, table, `"id" exists already`)
	trial.Fails(t, func(b *engine.Builder) { gbdt.Predict(table.Dataset(b), nil, gbdt.PredictOptions{}) }, "the model is nil")

	require.True(t, math.IsNaN(m.Predict([]float64{1})))
	require.True(t, math.IsNaN(m.PredictSparse([]int32{1, 1}, []float64{1, 1})))
	require.True(t, math.IsNaN(m.PredictSparse([]int32{3}, []float64{1})))
	require.False(t, m.Margins(table.Row(0), nil))
	require.False(t, m.PredictProbability(table.Row(0), make([]float64, 2)), "a regression has no probabilities")
	require.False(t, m.Leaves(table.Row(0), make([]int32, 1)))
}
