package svm_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
)

func TestBadParams(t *testing.T) {
	table := several(20, 2, 2)
	for text, p := range map[string]svm.LinearSVC{
		"L1 is -1":                      {L1: -1},
		"L2 is NaN":                     {L2: math.NaN()},
		"GapTol is -1":                  {GapTol: -1},
		"needs an L2 penalty":           {L1: 1},
		"ClassWeights are given and":    {Balanced: true, ClassWeights: map[string]float64{"0": 1}},
		`are both "p"`:                  {PredictionCol: "p", DecisionCol: "p"},
		"MaxIter is -1":                 {MaxIter: -1},
		"cannot minimise an L1 penalty": {L1: 1, L2: 1, Method: optim.LBFGS},
		"both VectorCol":                {VectorCol: "features", FeatureCols: []string{"label"}},
		`"feature"`:                     {VectorCol: "feature"},
		`ClassWeights of "0" is -1`:     {ClassWeights: map[string]float64{"0": -1}},
	} {
		p.LabelCol = "label"
		trial.Fails(t, func(b *engine.Builder) { engine.Collect(svm.TrainSVC(table.Dataset(b), p), "model") }, text)
	}
	for text, p := range map[string]svm.LinearSVR{
		"Epsilon is -1":             {Epsilon: -1},
		"Epsilon is NaN":            {Epsilon: math.NaN()},
		"GapTol is +Inf":            {GapTol: math.Inf(1)},
		"is vector[2], not a numbe": {OffsetCol: "features"},
	} {
		p.LabelCol = "label"
		trial.Fails(t, func(b *engine.Builder) { engine.Collect(svm.TrainSVR(table.Dataset(b), p), "model") }, "svm.TrainSVR", text)
	}
	require.ErrorContains(t, svm.LinearSVC{}.Validate(), "LabelCol is empty")
	trial.Fails(t, func(b *engine.Builder) { svm.TrainSVC(nil, svm.LinearSVC{LabelCol: "y"}) }, "the dataset is nil")
	trial.Fails(t, func(b *engine.Builder) { svm.TrainSVR(nil, svm.LinearSVR{LabelCol: "y"}) }, "the dataset is nil")
}

func TestBadRows(t *testing.T) {
	one, weightless, half, negative := several(20, 2, 2), several(20, 2, 2), several(20, 2, 2), several(20, 2, 2)
	for i := range one.Label {
		one.Label[i] = 3
		half.Weight[i] *= half.Label[i]
	}
	clear(weightless.Weight)
	negative.Weight[5] = -1
	wrong, infinite := several(20, 2, 2), several(20, 2, 2)
	wrong.X[7], infinite.Label[3] = math.NaN(), math.Inf(1)
	for text, table := range map[string]trial.Table{
		`every label in column "label" is "3": a classifier needs two classes or more`: one,
		"weigh":                           weightless,
		`every row of class "0" weighs 0`: half,
		`column "weight"`:                 negative,
		`column "features"`:               wrong,
		`column "label"`:                  infinite,
		"no rows":                         {D: 2, Label: []float64{}},
	} {
		trial.Fails(t, trainsSVC(table, svm.LinearSVC{}), text)
	}
	trial.Fails(t, trainsSVC(trial.TableOf([]float64{1}, []float64{2}), svm.LinearSVC{}), "two classes")
}

// TestRowsWithLittleInformation requires that training finds the optimum for one row, for
// constant and collinear columns, for more features than rows, and for separable classes. With
// an L2 penalty, there is an optimum in each of these cases.
func TestRowsWithLittleInformation(t *testing.T) {
	m := regress(t, trial.TableOf([]float64{7}, []float64{2, 3}), svm.LinearSVR{})
	require.InDelta(t, 7, m.Predict([]float64{2, 3}), 1e-6)

	table := several(60, 2, 2)
	more := table
	more.D, more.X = 4, nil
	for i := range table.N {
		x := table.Row(i)
		more.X = append(more.X, 7, x[0], x[1], x[0])
	}
	for _, squared := range []bool{false, true} {
		for _, sparse := range []bool{false, true} {
			more.Sparse = sparse
			m := classify(t, more, svm.LinearSVC{Squared: squared, L2: 0.1, GapTol: 1e-9, Tol: 1e-9})
			require.True(t, m.Summary.Converged, m.Summary.Reason)
			require.Zero(t, m.Coefficients[0][0])
			require.InDelta(t, m.Coefficients[0][1], m.Coefficients[0][3], 1e-4)
		}
	}
	wide := several(10, 30, 2)
	got := classify(t, wide, svm.LinearSVC{})
	require.Equal(t, optim.GapClosed, got.Summary.Reason)
	for i := range wide.N {
		require.Equal(t, int(wide.Label[i]), got.Predict(wide.Row(i)))
	}
	apart := trial.TableOf([]float64{0, 0, 1, 1}, []float64{-3}, []float64{-1}, []float64{1}, []float64{4})
	hard := classify(t, apart, svm.LinearSVC{L2: 1e-4, NoStandardize: true, GapTol: 1e-8})
	require.InDelta(t, 1, hard.Coefficients[0][0], 1e-3, "the nearest rows of both classes must have margins of −1 and +1")
	require.InDelta(t, 0, hard.Intercepts[0], 1e-3)
}

// TestMaxIter requires that training that ends at MaxIter reports that, and does not report
// convergence.
func TestMaxIter(t *testing.T) {
	m := classify(t, trial.Heart(t), svm.LinearSVC{MaxIter: 2})
	require.Equal(t, optim.MaxIterations, m.Summary.Reason)
	require.False(t, m.Summary.Converged)
	gap, ok := m.Summary.Measure(svm.RelativeDualityGap)
	require.True(t, ok)
	require.Greater(t, gap, 1e-6)
}
