package gbdt_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// visitor has one column of each kind; a nil pointer is null.
type visitor struct {
	Age   *float64
	Port  *string
	Deck  int64
	Alone bool
	Fate  string
}

// visitors returns rows in which every feature is informative.
func visitors(n int) []visitor {
	r := trial.Gaussian(3, n, 4)
	ports := []string{"le Havre", "Queenstown: 2", "Southampton=<3>"}
	var all []visitor
	for i := range n {
		x := r.Row(i)
		age, port := 30+10*x[0], ports[int(math.Abs(3*x[1]))%3]
		p := visitor{Age: &age, Port: &port, Deck: int64(math.Abs(4*x[2])) % 6, Alone: x[3] > 0, Fate: "lost at sea"}
		if age < 28 && p.Deck%2 == 0 || port == ports[1] && !p.Alone {
			p.Fate = "saved"
		}
		if i%9 == 0 {
			p.Age = nil
		}
		if i%7 == 0 {
			p.Port = nil
		}
		all = append(all, p)
	}
	return all
}

// TestNamesInOtherLibraries requires that the names of classes, columns and categories, and the
// feature types of XGBoost, are kept in the files, so that the imported model reads the same
// rows.
func TestNamesInOtherLibraries(t *testing.T) {
	rows := visitors(300)
	p := gbdt.Params{FeatureCols: []string{"age", "port", "deck", "alone"}, CategoricalCols: []string{"deck"}, LabelCol: "fate",
		Objective: gbdt.Logistic, NumTrees: 8, MaxDepth: 4, PredictionCol: "guess"}
	m := run(t, func(b *engine.Builder) *engine.Dataset { return gbdt.Train(operators.FromSlice(b, rows), p) })
	x, err := m.XGBoost()
	require.NoError(t, err)
	require.Equal(t, []string{"float", "c", "c", "i"}, x.Types)
	fromX := throughXGBoost(t, x, gbdt.ImportOptions{})
	l, err := m.LightGBM()
	require.NoError(t, err)
	fromL := throughLightGBM(t, l, gbdt.ImportOptions{})
	for _, one := range []*gbdt.Model{fromX, fromL} {
		require.Equal(t, m.Classes, one.Classes)
		require.Equal(t, m.Inputs(), one.Inputs())
		require.Equal(t, m.Ensemble.Features, one.Ensemble.Features)
		require.Equal(t, m.Ensemble.Categories, one.Ensemble.Categories)
		require.Equal(t, "guess", one.PredictionCol)
		require.Equal(t, m.Code(1, "Queenstown: 2"), one.Code(1, "Queenstown: 2"))
		want, got := make([]float64, 2), make([]float64, 2)
		for i := range rows {
			row := []float64{math.NaN(), math.NaN(), float64(rows[i].Deck), float64(i % 2)}
			if rows[i].Age != nil {
				row[0] = *rows[i].Age
			}
			if rows[i].Port != nil {
				row[1] = m.Code(1, *rows[i].Port)
			}
			require.True(t, m.PredictProbability(row, want) && one.PredictProbability(row, got))
			require.InDeltaSlice(t, want, got, 1e-6)
		}
	}
	// Values equal to thresholds, which lie between two float32 values, must go to the same
	// side.
	for i := range m.Ensemble.Trees {
		for _, n := range m.Ensemble.Trees[i].Nodes {
			if n.Leaf() || n.Feature != 0 {
				continue
			}
			for _, age := range []float64{n.Threshold, math.Nextafter(n.Threshold, 0), n.Threshold * (1 - 0x1p-26), n.Threshold * (1 - 0x1p-24)} {
				row := []float64{age, 1, 2, 1}
				a, b, c := make([]float64, 1), make([]float64, 1), make([]float64, 1)
				require.True(t, m.Margins(row, a) && fromL.Margins(row, b) && fromX.Margins(row, c))
				require.InDelta(t, a[0], b[0], 1e-12)
				require.InDelta(t, a[0], c[0], 1e-6)
			}
		}
	}
	// The options can name other columns and classes, in place of those in the file.
	other := throughXGBoost(t, x, gbdt.ImportOptions{FeatureCols: []string{"a", "b", "c", "d"}, Classes: gbdt.Classes{Values: []string{"no", "yes"}}})
	require.Equal(t, "b", other.Inputs()[1].Column)
	require.Equal(t, "utf8", other.Inputs()[1].Type)
	require.Equal(t, gbdt.Classes{Type: "utf8", Values: []string{"no", "yes"}}, other.Classes)
}

// throughXGBoost returns x after it was written to both file formats of XGBoost and read again.
func throughXGBoost(t testing.TB, x *xgboost.Model, o gbdt.ImportOptions) *gbdt.Model {
	t.Helper()
	text, err := x.Encode()
	require.NoError(t, err)
	binary, err := x.EncodeUBJSON()
	require.NoError(t, err)
	var files [][]byte
	var m *gbdt.Model
	for _, data := range [][]byte{text, binary} {
		x, err := xgboost.Decode(data)
		require.NoError(t, err)
		m, err = gbdt.FromXGBoost(x, o)
		require.NoError(t, err)
		file, err := m.Encode()
		require.NoError(t, err)
		files = append(files, file)
	}
	require.Equal(t, string(files[0]), string(files[1]))
	return m
}

func throughLightGBM(t testing.TB, x *lightgbm.Model, o gbdt.ImportOptions) *gbdt.Model {
	t.Helper()
	text, err := x.Encode()
	require.NoError(t, err)
	x, err = lightgbm.Decode(text)
	require.NoError(t, err)
	m, err := gbdt.FromLightGBM(x, o)
	require.NoError(t, err)
	return m
}

// stump returns a tree with one split, at 0 of feature 0, and the given leaf values.
func stump(output int32, left, right float64) tree.Tree {
	return tree.Tree{Output: output, Weight: 1, Nodes: []tree.Node{{Left: 1, Right: 2}, {Value: left}, {Value: right}}}
}

// stumps returns an ensemble of the trees over two features without names.
func stumps(outputs int, trees ...tree.Tree) *tree.Ensemble {
	return &tree.Ensemble{Features: []string{"f0", "f1"}, Outputs: outputs, Base: make([]float64, outputs), Single: true, Trees: trees}
}

// TestModelsOfOthers requires that models in the form in which XGBoost or LightGBM trains them
// predict the same in this package.
func TestModelsOfOthers(t *testing.T) {
	xgb := func(objective string, e *tree.Ensemble) *xgboost.Model {
		x, err := xgboost.New(e, objective, e.Outputs)
		require.NoError(t, err)
		return x
	}
	// With two trees for each class in a round, the trees of a class are consecutive.
	x := xgb("multi:softmax", stumps(3, stump(0, 1, -1), stump(0, 2, -2), stump(1, 3, -3), stump(1, 4, -4), stump(2, 5, -5), stump(2, 6, -6)))
	x.ParallelTrees = 2
	m := throughXGBoost(t, x, gbdt.ImportOptions{})
	require.Equal(t, gbdt.Softmax, m.Objective)
	require.Equal(t, gbdt.Classes{Type: "int64", Values: []string{"0", "1", "2"}}, m.Classes)
	require.Equal(t, "features", m.Inputs()[0].Column)
	margins, want := make([]float64, 3), make([]float64, 3)
	for _, row := range [][]float64{{-1, 0}, {1, 0}, {math.NaN(), 0}} {
		x.Ensemble.Scorer().Scores(row, want)
		require.True(t, m.Margins(row, margins))
		require.Equal(t, want, margins)
	}
	// The objective's parameters and the best round must be read from the file.
	x = xgb("reg:quantileerror", stumps(1, stump(0, 1, -1), stump(0, 2, -2), stump(0, 4, -4)))
	x.Parameters = map[string]string{"quantile_alpha": "[2.5E-1]"}
	x.Attributes = map[string]string{"best_iteration": "1"}
	m = throughXGBoost(t, x, gbdt.ImportOptions{})
	require.Equal(t, map[string]float64{"QuantileAt": 0.25}, m.Parameters)
	require.Equal(t, 7.0, m.Predict([]float64{-1, 0}))
	require.Equal(t, []int{3, 2}, []int{m.Summary.Rounds, m.Summary.BestRound})
	m = throughXGBoost(t, x, gbdt.ImportOptions{BestRound: true})
	require.Equal(t, 3.0, m.Predict([]float64{-1, 0}))
	again, err := m.XGBoost()
	require.NoError(t, err)
	require.Equal(t, "1", again.Attributes["best_iteration"])
	require.Equal(t, "[0.25]", again.Parameters["quantile_alpha"])

	// A scaled sigmoid and a forest of LightGBM must be imported.
	e := stumps(1, stump(0, 1, -1), stump(0, 2, -2))
	e.Base[0] = 0.25
	l, err := lightgbm.New(e, "binary", 0)
	require.NoError(t, err)
	l.Parameters = map[string]string{"sigmoid": "0.5"}
	m = throughLightGBM(t, l, gbdt.ImportOptions{})
	p := make([]float64, 2)
	require.True(t, m.PredictProbability([]float64{-1, 0}, p))
	require.InDelta(t, 1/(1+math.Exp(-0.5*3.25)), p[1], 1e-15)
	averaged := stumps(1, stump(0, 1, -1), stump(0, 2, -2))
	averaged.Average = true
	l, err = lightgbm.New(averaged, "poisson", 0)
	require.NoError(t, err)
	require.InDelta(t, math.Exp(1.5), throughLightGBM(t, l, gbdt.ImportOptions{}).Predict([]float64{-1, 0}), 1e-15*math.Exp(1.5))
	l, err = lightgbm.New(averaged, "quantile", 0)
	require.NoError(t, err)
	l.Settings = []string{"[boosting: rf]", "[alpha: 0.75]"}
	averaged.Features = []string{"height", "width"}
	m = throughLightGBM(t, l, gbdt.ImportOptions{})
	require.Equal(t, map[string]float64{"QuantileAt": 0.75}, m.Parameters)
	require.Equal(t, "width", m.Inputs()[1].Column, "the name of a feature must become the name of its column")
}

// TestSeveralOutputsInOtherLibraries requires that a custom objective with several outputs is
// written to the files, where the outputs are plain sums of trees.
func TestSeveralOutputsInOtherLibraries(t *testing.T) {
	rows := made(5, 100, 3)
	p := gbdt.Params{LabelCol: "label", Objective: gbdt.Custom, NumTrees: 3, MaxDepth: 2, CustomObjective: &gbdt.CustomObjective{
		Name: "mean and square", Outputs: 2, Gradients: func(r *gbdt.Rows, grad, hess [][]float64) error {
			for i, y := range r.Label {
				grad[0][i], hess[0][i] = r.Margin[0][i]-y, 1
				grad[1][i], hess[1][i] = r.Margin[1][i]-float64(y*y), 1
			}
			return nil
		}}}
	m := train(t, rows, p)
	x, err := m.XGBoost()
	require.NoError(t, err)
	l, err := m.LightGBM()
	require.NoError(t, err)
	for _, one := range []*gbdt.Model{throughXGBoost(t, x, gbdt.ImportOptions{}), throughLightGBM(t, l, gbdt.ImportOptions{})} {
		require.Equal(t, "mean and square", one.CustomName)
		want, got := make([]float64, 2), make([]float64, 2)
		for i := range rows.N {
			require.True(t, m.Margins(rows.Row(i), want) && one.Margins(rows.Row(i), got))
			require.InDeltaSlice(t, want, got, 1e-5)
		}
	}
	p.CustomObjective.Link = gbdt.Exponential
	m = train(t, rows, p)
	_, err = m.XGBoost()
	require.ErrorContains(t, err, `"mean and square" has 2 outputs of the link exponential`)
	_, err = m.LightGBM()
	require.ErrorContains(t, err, "2 outputs")
}

// TestBadImports requires an error that names the fact that the other format cannot hold.
func TestBadImports(t *testing.T) {
	fails := func(objective string, change func(x *xgboost.Model), o gbdt.ImportOptions, want string) {
		t.Helper()
		e := stumps(1, stump(0, 1, -1))
		if objective == "multi:softprob" {
			e = stumps(2, stump(0, 1, -1), stump(1, 1, -1))
		}
		x, err := xgboost.New(e, objective, e.Outputs)
		require.NoError(t, err)
		if change != nil {
			change(x)
		}
		_, err = gbdt.FromXGBoost(x, o)
		require.ErrorContains(t, err, want)
	}
	noted := func(notes string) func(x *xgboost.Model) {
		return func(x *xgboost.Model) { x.Attributes = map[string]string{"superstep": notes} }
	}
	fails("binary:hinge", nil, gbdt.ImportOptions{}, `"binary:hinge" has no counterpart here`)
	fails("reg:gamma", nil, gbdt.ImportOptions{FeatureCols: []string{"a"}}, "1 inputs of 2 features")
	fails("reg:gamma", nil, gbdt.ImportOptions{FeatureCols: []string{"a", "b"}, VectorCol: "v"}, "both VectorCol and FeatureCols")
	fails("reg:gamma", nil, gbdt.ImportOptions{BestRound: true}, "does not tell the best round")
	fails("reg:gamma", nil, gbdt.ImportOptions{Classes: gbdt.Classes{Values: []string{"a", "b"}}}, "2 classes for the objective gamma")
	fails("binary:logistic", nil, gbdt.ImportOptions{Classes: gbdt.Classes{Values: []string{"a"}}}, "1 names of classes: the model has 2")
	fails("binary:logistic", nil, gbdt.ImportOptions{Classes: gbdt.Classes{Values: []string{"a", "a"}}}, "occurs twice")
	fails("multi:softprob", nil, gbdt.ImportOptions{Classes: gbdt.Classes{Type: "int8", Values: []string{"1", "x"}}}, `"x" is not a int8`)
	fails("multi:softprob", func(x *xgboost.Model) { x.Ensemble.Trees = x.Ensemble.Trees[:1] }, gbdt.ImportOptions{}, "output 1 has 0 trees, output 0 1")
	fails("reg:squarederror", func(x *xgboost.Model) { *x.Ensemble = *stumps(2, stump(0, 1, -1), stump(1, 1, -1)) }, gbdt.ImportOptions{}, "has 2 outputs")
	fails("binary:logitraw", func(x *xgboost.Model) { *x.Ensemble = *stumps(2, stump(0, 1, -1), stump(1, 1, -1)) }, gbdt.ImportOptions{}, "it has 2 outputs")
	fails("reg:gamma", func(x *xgboost.Model) { x.Ensemble = nil }, gbdt.ImportOptions{}, "no ensemble")
	fails("reg:gamma", func(x *xgboost.Model) { x.Ensemble.Trees[0].Nodes[0].Left = 9 }, gbdt.ImportOptions{}, "tree 0")
	fails("reg:gamma", noted(`{"kind":"gbdt"`), gbdt.ImportOptions{}, `the notes "superstep"`)
	fails("reg:gamma", noted(`{"kind":"gbdt","objective":"gama"}`), gbdt.ImportOptions{}, `unknown objective "gama"`)
	fails("reg:gamma", noted(`{"kind":"gbdt","objective":"gamma","inputs":[{"column":"a","type":"float64"}]}`), gbdt.ImportOptions{}, "1 columns: there are 2 features")
	fails("reg:gamma", noted(`{"kind":"gbdt","objective":"gamma","inputs":[{"column":"a","type":"vector[2]"}],"categories":[{"feature":2,"names":["a"]}]}`), gbdt.ImportOptions{}, "feature 2: there are 2")
	fails("binary:logistic", noted(`{"kind":"gbdt","objective":"logistic","inputs":[{"column":"a","type":"vector[2]"}],"classes":["a"],"label_type":"utf8"}`), gbdt.ImportOptions{}, "1 names of classes")

	for want, change := range map[string]func(x *lightgbm.Model){
		`"multiclassova" has no counterpart here`: func(x *lightgbm.Model) {
			x.Objective, *x.Ensemble = "multiclassova", *stumps(2, stump(0, 1, -1), stump(1, 1, -1))
		},
		"predicts roots":          func(x *lightgbm.Model) { x.Parameters = map[string]string{"sqrt": ""} },
		"no ensemble":             func(x *lightgbm.Model) { x.Ensemble = nil },
		"several outputs":         func(x *lightgbm.Model) { x.Ensemble.Trees[0].Values = []float64{0, 1, 2} },
		`the notes "superst`:      func(x *lightgbm.Model) { x.Parameters = map[string]string{"superstep": "%zz"} },
		"has no counterpart here": func(x *lightgbm.Model) { x.Objective = "cross_entropy_lambda" },
		"LightGBM writes the":     func(x *lightgbm.Model) {},
	} {
		l, err := lightgbm.New(stumps(1, stump(0, 1, -1)), "regression", 0)
		require.NoError(t, err)
		change(l)
		_, err = gbdt.FromLightGBM(l, gbdt.ImportOptions{BestRound: strings.HasPrefix(want, "LightGBM writes")})
		require.ErrorContains(t, err, want)
	}
	// Notes of another kind of model are ignored.
	x, err := xgboost.New(stumps(1, stump(0, 1, -1)), "reg:gamma", 0)
	require.NoError(t, err)
	noted(`{"kind":"other"}`)(x)
	_, err = gbdt.FromXGBoost(x, gbdt.ImportOptions{})
	require.NoError(t, err)
	// Text that a file cannot hold is an error.
	m, err := gbdt.FromXGBoost(x, gbdt.ImportOptions{VectorCol: "bad\xff"})
	require.NoError(t, err)
	_, err = m.XGBoost()
	require.ErrorContains(t, err, "is not UTF-8")
	_, err = m.LightGBM()
	require.ErrorContains(t, err, "is not UTF-8")
}
