package forest_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// through writes the forest m to the files of other libraries and reads it back. It returns the
// models of the libraries and the forests that were made from them.
func through(t testing.TB, m *forest.Model) (x *xgboost.Model, l *lightgbm.Model, fromX, fromL *forest.Model) {
	t.Helper()
	x, err := m.XGBoost()
	require.NoError(t, err)
	data, err := x.EncodeUBJSON()
	require.NoError(t, err)
	x, err = xgboost.Decode(data)
	require.NoError(t, err)
	fromX, err = forest.FromXGBoost(x)
	require.NoError(t, err)
	l, err = m.LightGBM()
	require.NoError(t, err)
	data, err = l.Encode()
	require.NoError(t, err)
	l, err = lightgbm.Decode(data)
	require.NoError(t, err)
	fromL, err = forest.FromLightGBM(l)
	require.NoError(t, err)
	return x, l, fromX, fromL
}

// TestClassesInOtherLibraries requires that both libraries predict the shares of classes, and
// that the forest can be read back from both.
func TestClassesInOtherLibraries(t *testing.T) {
	rows := passengers(300)
	p := passengerColumns
	p.Method, p.NumTrees, p.MaxDepth, p.ProbabilityCol = forest.RandomForest, 7, 5, "chance"
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(forest.Train(operators.FromSlice(b, rows), p), "model")
	})
	m, err := forest.ModelOf(r, "model")
	require.NoError(t, err)
	x, l, fromX, fromL := through(t, m)
	require.Equal(t, 7, x.ParallelTrees)
	require.Equal(t, 1, x.Rounds())
	scorers := []*tree.Scorer{x.Ensemble.Scorer(), l.Ensemble.Scorer()}
	for _, one := range []*forest.Model{fromX, fromL} {
		require.Equal(t, m.Classes, one.Classes)
		require.Equal(t, m.Inputs(), one.Inputs())
		require.Equal(t, m.Trees.Features, one.Trees.Features)
		require.Equal(t, m.Trees.Categories, one.Trees.Categories)
		require.Equal(t, "chance", one.ProbabilityCol)
		_, err := one.Encode()
		require.NoError(t, err)
	}
	require.Equal(t, m.Summary.Nodes, fromX.Summary.Nodes)
	require.Equal(t, m.Summary.Leaves, fromX.Summary.Leaves)
	require.Equal(t, m.Summary.MaxDepth, fromX.Summary.MaxDepth)
	want, got := make([]float64, 2), make([]float64, 2)
	for i := range rows {
		row := []float64{math.NaN(), math.NaN(), float64(rows[i].Deck), float64(i % 2)}
		if rows[i].Age != nil {
			row[0] = *rows[i].Age
		}
		if rows[i].Port != nil {
			row[1] = m.Code(1, *rows[i].Port)
		}
		require.True(t, m.PredictProbability(row, want))
		for _, s := range scorers {
			s.Scores(row, got)
			require.InDeltaSlice(t, want, got, 1e-6)
		}
		require.True(t, fromX.PredictProbability(row, got))
		require.InDeltaSlice(t, want, got, 1e-6)
		require.True(t, fromL.PredictProbability(row, got))
		require.InDeltaSlice(t, want, got, 1e-12)
	}
}

// TestNumbersInOtherLibraries requires that a regression can be read back too. Without
// categories, LightGBM's trees must be the same, bit for bit.
func TestNumbersInOtherLibraries(t *testing.T) {
	table := numbers(1, 200, 5)
	m := train(t, table, forest.Params{LabelCol: "label", NumTrees: 5, AbsentIsZero: true})
	x, l, fromX, fromL := through(t, m)
	require.True(t, fromX.AbsentIsZero)
	require.Equal(t, m.Summary.MaxDepth, fromL.Summary.MaxDepth)
	a, b := x.Ensemble.Scorer(), l.Ensemble.Scorer()
	got := make([]float64, 1)
	for i := range table.N {
		row := table.Row(i)
		want := m.Predict(row)
		require.Equal(t, want, fromL.Predict(row))
		require.InDelta(t, want, fromX.Predict(row), 1e-6*max(1, math.Abs(want)))
		a.Scores(row, got)
		require.InDelta(t, want, got[0], 1e-6*max(1, math.Abs(want)))
		b.Scores(row, got)
		require.Equal(t, want, got[0])
	}
}

func TestBadExchange(t *testing.T) {
	m := train(t, classes(5, 60, 3, 3), forest.Params{LabelCol: "label", Task: forest.Classification, NumTrees: 2, MaxDepth: 2})
	change := func(f func(x *xgboost.Model), want string) {
		t.Helper()
		x, _, _, _ := through(t, m)
		f(x)
		_, err := forest.FromXGBoost(x)
		require.ErrorContains(t, err, want)
	}
	note := func(text string) func(*xgboost.Model) {
		return func(x *xgboost.Model) { x.Attributes["superstep"] = text }
	}
	change(func(x *xgboost.Model) { x.Ensemble = nil }, "no ensemble")
	change(func(x *xgboost.Model) { x.Ensemble.Trees[2].Nodes[0].Feature++ }, "tree 0 of class 1 splits otherwise")
	change(func(x *xgboost.Model) { x.Ensemble.Trees = x.Ensemble.Trees[:5] }, "output 2 has 1 trees, output 0 2")
	change(func(x *xgboost.Model) { x.Ensemble.Trees = nil }, "no trees")
	change(func(x *xgboost.Model) { x.Ensemble.Trees[1].Nodes[0].Left = -1 }, "tree 1")
	change(note("{"), "the notes")
	change(note(`{"kind":"forest","inputs":[]}`), "no columns")
	change(note(`{"kind":"forest","inputs":[{"column":"a","type":"txt"}]}`), "1 columns: there are 3 features")
	change(note(`{"kind":"forest","inputs":[{"column":"a","type":"vector[3]"}]}`), "3 outputs")
	change(note(`{"kind":"forest","inputs":[{"column":"a","type":"vector[3]"}],"label_type":"utf8","classes":["a"]}`), "3 outputs")
	x, err := xgboost.New(m.Trees, "reg:squarederror", 0)
	require.NoError(t, err)
	_, err = forest.FromXGBoost(x)
	require.ErrorIs(t, err, forest.ErrForeign)
	l, err := lightgbm.New(m.Trees, "custom", 0)
	require.NoError(t, err)
	_, err = forest.FromLightGBM(l)
	require.ErrorIs(t, err, forest.ErrForeign)
	l.Parameters = map[string]string{"superstep": "%"}
	_, err = forest.FromLightGBM(l)
	require.ErrorContains(t, err, "the notes")
	m.Trees = nil
	_, err = m.XGBoost()
	require.ErrorContains(t, err, "there are no trees")
	_, err = m.LightGBM()
	require.ErrorContains(t, err, "there are no trees")
}
