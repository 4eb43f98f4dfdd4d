package forest_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

func TestParametersAreChecked(t *testing.T) {
	start := train(t, classes(1, 50, 3, 2), forest.Params{LabelCol: "label", NumTrees: 3})
	for _, c := range []struct {
		change func(p *forest.Params)
		want   string
	}{
		{func(p *forest.Params) { p.LabelCol = "" }, "LabelCol is empty"},
		{func(p *forest.Params) { p.VectorCol, p.FeatureCols = "a", []string{"b"} }, "both VectorCol and FeatureCols"},
		{func(p *forest.Params) { p.CategoricalCols = []string{"b"} }, `CategoricalCols has "b", which FeatureCols has not`},
		{func(p *forest.Params) { p.PredictionCol = "probability" }, `both "probability"`},
		{func(p *forest.Params) { p.Task = 2 }, "Task(2)"},
		{func(p *forest.Params) { p.Method = -1 }, "Method(-1)"},
		{func(p *forest.Params) { p.Criterion = 9 }, "Criterion(9)"},
		{func(p *forest.Params) { p.Sampling = 4 }, "Sampling(4)"},
		{func(p *forest.Params) { p.Criterion = forest.Gini }, "Criterion is gini, which is for classes, and Task is regression"},
		{func(p *forest.Params) { p.Task, p.Criterion = forest.Classification, forest.Poisson }, "Criterion is poisson, which is for numbers"},
		{func(p *forest.Params) { p.NumTrees = -1 }, "NumTrees is -1"},
		{func(p *forest.Params) { p.NumTrees = 1 << 21 }, "NumTrees is 2097152"},
		{func(p *forest.Params) { p.Method, p.NumTrees = forest.SingleTree, 2 }, "a SingleTree is one tree"},
		{func(p *forest.Params) { p.MaxDepth = -2 }, "MaxDepth is -2"},
		{func(p *forest.Params) { p.MaxLeaves = 1 }, "MaxLeaves is 1"},
		{func(p *forest.Params) { p.MinSamplesLeaf = -1 }, "MinSamplesLeaf is -1"},
		{func(p *forest.Params) { p.MinSamplesSplit = 1 }, "MinSamplesSplit is 1"},
		{func(p *forest.Params) { p.MinSplitGain = math.NaN() }, "MinSplitGain is NaN"},
		{func(p *forest.Params) { p.MaxFeatures = "most" }, `MaxFeatures is "most"`},
		{func(p *forest.Params) { p.MaxFeatures = "1.5" }, `MaxFeatures is "1.5"`},
		{func(p *forest.Params) { p.MaxFeatures = "0" }, `MaxFeatures is "0"`},
		{func(p *forest.Params) { p.MaxBins = 256 }, "MaxBins is 256"},
		{func(p *forest.Params) { p.Memory = -1 }, "Memory is -1"},
		{func(p *forest.Params) { p.SampleShare = 1.5 }, "SampleShare is 1.5"},
		{func(p *forest.Params) { p.Sampling, p.SampleShare = forest.Whole, 0.5 }, "Sampling is whole, which draws nothing"},
		{func(p *forest.Params) { p.Method, p.OOBScore = forest.ExtraTrees, true }, "OOBScore is set, and Sampling is whole"},
		{func(p *forest.Params) { p.Balanced = true }, "are for classes, and Task is regression"},
		{func(p *forest.Params) {
			p.Task, p.Balanced, p.ClassWeights = forest.Classification, true, map[string]float64{"0": 1}
		}, "choose one"},
		{func(p *forest.Params) { p.Task, p.ClassWeights = forest.Classification, map[string]float64{"0": -1} }, `ClassWeights of "0" is -1`},
		{func(p *forest.Params) { p.Task, p.ClassWeights = forest.Classification, map[string]float64{"0": 0} }, `ClassWeights of "0" is 0: want a number above 0`},
		{func(p *forest.Params) { p.Start = &forest.Model{} }, "Start has no trees"},
		{func(p *forest.Params) { p.Start, p.Task = start, forest.Classification }, "Start is a regression, and Task is classification"},
		{func(p *forest.Params) { p.Start, p.NumTrees = start, 3 }, "NumTrees is 3, and Start has 3 trees"},
	} {
		p := forest.Params{LabelCol: "label"}
		require.NoError(t, p.Validate())
		c.change(&p)
		require.ErrorContains(t, p.Validate(), c.want)
		fails(t, numbers(1, 20, 3), p, "forest.Train", c.want)
	}
}

func TestFeaturesOfANode(t *testing.T) {
	for text, want := range map[string]int{"sqrt": 5, "log2": 4, "third": 9, "all": 28, "7": 7, "99": 28, "0.4": 11, "0.001": 1, "1.0": 28} {
		require.Equal(t, want, forest.Tried(forest.Params{MaxFeatures: text}, 28), text)
	}
	require.Equal(t, 9, forest.Tried(forest.Params{}, 28))
	require.Equal(t, 1, forest.Tried(forest.Params{}, 2))
	require.Equal(t, 5, forest.Tried(forest.Params{Task: forest.Classification}, 28))
	require.Equal(t, 28, forest.Tried(forest.Params{Task: forest.Classification, Method: forest.SingleTree}, 28))
}

func TestRowsAreChecked(t *testing.T) {
	with := func(change func(t *trial.Table)) trial.Table {
		c := classes(1, 40, 3, 2)
		change(&c)
		return c
	}
	p := forest.Params{LabelCol: "label", NumTrees: 2}
	weighted, counting, classing := p, p, p
	weighted.WeightCol, counting.Criterion, classing.Task = "weight", forest.Poisson, forest.Classification
	fails(t, with(func(t *trial.Table) { t.Label[3] = math.NaN() }), p, `column "label": the label is NaN`)
	fails(t, with(func(t *trial.Table) { t.Label[3] = math.Inf(1) }), p, `column "label": the label is +Inf`)
	fails(t, with(func(t *trial.Table) { t.Label[3] = -2 }), counting, `column "label": the label is -2`, "0 or more")
	fails(t, with(func(t *trial.Table) { t.Weight[3] = -1 }), weighted, "weight", "-1")
	fails(t, with(func(t *trial.Table) { t.Weight[3] = math.NaN() }), weighted, "weight", "NaN")
	fails(t, with(func(t *trial.Table) { t.Weight = make([]float64, t.N) }), weighted, "weight")
	fails(t, trial.Table{D: 2, Label: []float64{}}, p, "no rows")
	fails(t, with(func(t *trial.Table) { t.Label[0], t.Weight[0] = 1e300, 1e300 }), weighted, "float64")
	p.LabelCol = "nothing"
	fails(t, numbers(1, 20, 3), p, `"nothing"`)
	p.LabelCol = "features"
	fails(t, numbers(1, 20, 3), p, "features")
	weighing := classing
	weighing.WeightCol = "weight"
	table := classes(1, 40, 3, 2)
	table.Weight = slices.Clone(table.Label)
	fails(t, table, weighing, `every row of class "0" weighs 0: leave such rows out, or give some a weight`)
	classing.ClassWeights = map[string]float64{"0": 1, "7": 2}
	fails(t, classes(1, 40, 3, 2), classing, `ClassWeights name "7", which is no class`, `["0" "1"]`)
}

// TestPoorRows requires that rows from which little can be learnt give small trees and no
// error.
func TestPoorRows(t *testing.T) {
	nan := math.NaN()
	for name, table := range map[string]trial.Table{
		"one row":       trial.TableOf([]float64{1}, []float64{2, 3}),
		"one class":     trial.TableOf([]float64{1, 1, 1}, []float64{2, 3}, []float64{4, 5}, []float64{1, 2}),
		"constant":      trial.TableOf([]float64{0, 1, 0, 1}, []float64{2, 1}, []float64{2, 2}, []float64{2, 1}, []float64{2, 2}),
		"missing":       trial.TableOf([]float64{0, 1, 0, 1}, []float64{nan, 1}, []float64{nan, 2}, []float64{nan, 1}, []float64{nan, 2}),
		"all missing":   trial.TableOf([]float64{0, 1}, []float64{nan}, []float64{nan}),
		"infinite":      trial.TableOf([]float64{0, 1, 0, 1}, []float64{math.Inf(-1)}, []float64{math.Inf(1)}, []float64{math.Inf(-1)}, []float64{math.Inf(1)}),
		"only presence": trial.TableOf([]float64{0, 1, 0, 1}, []float64{nan}, []float64{5}, []float64{nan}, []float64{5}),
	} {
		for _, task := range []forest.Task{forest.Regression, forest.Classification} {
			if task == forest.Classification && (name == "one row" || name == "one class") {
				fails(t, table, forest.Params{LabelCol: "label", Task: task, Method: forest.SingleTree}, `every label in column "label" is "1"`)
				continue
			}
			m := train(t, table, forest.Params{LabelCol: "label", Task: task, Method: forest.SingleTree})
			for i, y := range table.Label {
				got := m.Predict(table.Row(i))
				if task == forest.Classification {
					got = map[string]float64{"0": 0, "1": 1}[m.Classes.Values[int(got)]]
				}
				switch name {
				case "all missing": // the two rows have the same features
					require.LessOrEqual(t, got, 0.5)
				default:
					require.Equal(t, y, got, "%s, %v", name, task)
				}
			}
		}
	}
}

// TestTextMissingInEveryRow requires that a text column that is null in every training row is
// still a text column. In predictions any text in it must be treated as missing.
func TestTextMissingInEveryRow(t *testing.T) {
	type row struct {
		Word     *string
		X, Label float64
	}
	var rows, asked []row
	for i := range 40 {
		word := "w" + string(rune('a'+i%3))
		rows = append(rows, row{nil, float64(i), float64(i % 20)})
		asked = append(asked, row{&word, float64(i), 0})
	}
	r := trial.Run(t, func(b *engine.Builder) {
		made := forest.Train(operators.FromSlice(b, rows), forest.Params{FeatureCols: []string{"word", "x"}, LabelCol: "label", NumTrees: 5})
		engine.Collect(made, "model")
		engine.Collect(forest.Predict(operators.FromSlice(b, asked), made, forest.PredictOptions{}), "rows")
	})
	m, err := forest.ModelOf(r, "model")
	require.NoError(t, err)
	got, err := engine.Rows[struct{ Prediction float64 }](r, "rows")
	require.NoError(t, err)
	require.Len(t, got, len(asked))
	for i := range got {
		require.Equal(t, m.Predict([]float64{math.NaN(), asked[i].X}), got[i].Prediction)
	}
	require.Equal(t, -1.0, m.Code(0, "wa"))
	for _, write := range []func() (*forest.Model, error){
		func() (*forest.Model, error) {
			x, err := m.XGBoost()
			require.NoError(t, err)
			return forest.FromXGBoost(x)
		},
		func() (*forest.Model, error) {
			x, err := m.LightGBM()
			require.NoError(t, err)
			return forest.FromLightGBM(x)
		},
	} {
		back, err := write()
		require.NoError(t, err)
		require.Equal(t, -1.0, back.Code(0, "wa"))
	}
}

// TestTreesWithoutRows requires that training succeeds if a tree draws no row.
func TestTreesWithoutRows(t *testing.T) {
	m := train(t, trial.TableOf([]float64{1, 1}, []float64{2}, []float64{3}), forest.Params{LabelCol: "label", NumTrees: 40, Sampling: forest.Subset, SampleShare: 0.1})
	require.Len(t, m.Trees.Trees, 40)
	require.GreaterOrEqual(t, m.Predict([]float64{2}), 0.0)
}

func TestStartMustSuit(t *testing.T) {
	table := classes(1, 60, 3, 2)
	p := forest.Params{LabelCol: "label", Task: forest.Classification, NumTrees: 2, Seed: 1}
	p.Start = train(t, table, p)
	p.NumTrees = 4
	fails(t, classes(1, 60, 4, 2), p, "Start reads")
	fails(t, classes(1, 60, 3, 3), p, "Start knows the classes")
	other := p
	other.AbsentIsZero = true
	fails(t, table, other, "Start has AbsentIsZero false")
	other = p
	other.OOBScore, other.Seed = true, 9
	fails(t, table, other, "it drew them otherwise", "seed 1")
	other.Seed = 1
	fails(t, classes(8, 60, 3, 2), other, "it grew on other rows")
}

func TestPredictChecks(t *testing.T) {
	m := train(t, classes(1, 50, 3, 2), forest.Params{LabelCol: "label", Task: forest.Classification, NumTrees: 2})
	predict := func(o forest.PredictOptions, table trial.Table, texts ...string) {
		t.Helper()
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(forest.Predict(table.Dataset(b), m.Dataset(b), o), "rows")
		}, texts...)
	}
	one := trial.TableOf(nil, []float64{1, 2, 3})
	predict(forest.PredictOptions{}, trial.TableOf(nil, []float64{1}), "has 1 components, the model was trained on 3")
	predict(forest.PredictOptions{}, trial.Table{N: 1, D: 2, X: []float64{1, 2}, Sparse: true}, "has 2 components, the model was trained on 3")
	predict(forest.PredictOptions{VectorCol: "x"}, one, `"x"`)
	predict(forest.PredictOptions{VectorCol: "id"}, one, `column "id" is an integer`)
	predict(forest.PredictOptions{FeatureCols: []string{"id"}}, one, "FeatureCols has 1 columns, the model was trained on 3 features")
	predict(forest.PredictOptions{FeatureCols: []string{"id", "features", "id"}}, one, `column "features" is`, "a number")
	predict(forest.PredictOptions{VectorCol: "x", FeatureCols: []string{"id"}}, one, "both VectorCol and FeatureCols")
	predict(forest.PredictOptions{PredictionCol: "id"}, one, `"id" exists already`)
	trial.Fails(t, func(b *engine.Builder) { forest.Predict(one.Dataset(b), nil, forest.PredictOptions{}) }, "the model is nil")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(forest.Predict(one.Dataset(b), operators.Select(m.Dataset(b), "model"), forest.PredictOptions{}), "rows")
	}, "the model is a classification")
}

// TestExtremeLabels requires that labels may have any finite magnitude and any distance from 0.
func TestExtremeLabels(t *testing.T) {
	for _, labels := range [][]float64{
		{1e150, -1e150, 2e150, 0}, {1e-300, 3e-300, 0, 2e-300}, {5e-324, 0, 0, 0},
		{1e15, 1e15 + 1, 1e15 + 2, 1e15 + 3},
	} {
		table := trial.TableOf(labels, []float64{1}, []float64{2}, []float64{3}, []float64{4})
		m := train(t, table, forest.Params{LabelCol: "label", Method: forest.SingleTree})
		for i, y := range labels {
			require.InEpsilon(t, 1+y, 1+m.Predict(table.Row(i)), 1e-9)
			if math.Abs(y) > 1e-310 {
				require.InEpsilon(t, y, m.Predict(table.Row(i)), 1e-9)
			}
		}
		train(t, table, forest.Params{LabelCol: "label", NumTrees: 3, OOBScore: true})
	}
	fails(t, trial.TableOf([]float64{1e200, -1e200}, []float64{1}, []float64{2}), forest.Params{LabelCol: "label"}, "float64", "scale them down")
}
