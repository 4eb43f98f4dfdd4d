package svm_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

func trainsSVC(table trial.Table, p svm.LinearSVC) func(b *engine.Builder) {
	return func(b *engine.Builder) {
		engine.Collect(svm.TrainSVC(table.Dataset(b), svcColumns(table, p)), "model")
	}
}

func TestSameBits(t *testing.T) {
	wild := trial.Wild(100, 3)
	sparse := several(90, 3, 4)
	sparse.Sparse = true
	for name, c := range map[string]struct {
		table trial.Table
		p     svm.LinearSVC
	}{
		"wild":   {wild, svm.LinearSVC{L2: 0.1, MaxIter: 8}},
		"newton": {several(60, 2, 3), svm.LinearSVC{L2: 0.1, MaxIter: 14}},
		"lbfgs":  {sparse, svm.LinearSVC{Method: optim.LBFGS, MaxIter: 10, Balanced: true}},
		"owlqn":  {sparse, svm.LinearSVC{Squared: true, L1: 0.01, MaxIter: 8}},
		"sgd":    {sparse, svm.LinearSVC{Method: optim.SGD, MaxIter: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			trial.SameBits(t, func(b *engine.Builder) {
				rows := c.table.Dataset(b)
				made := svm.TrainSVC(rows, svcColumns(c.table, c.p))
				engine.Collect(made, "model")
				engine.Collect(svm.PredictSVC(rows, made, svm.PredictOptions{}), "predictions")
			}, "linear-svc")
		})
	}
	t.Run("regression", func(t *testing.T) {
		table := target(90, 3)
		trial.SameBits(t, func(b *engine.Builder) {
			rows := table.Dataset(b)
			made := svm.TrainSVR(rows, svrColumns(table, svm.LinearSVR{Epsilon: 0.1, MaxIter: 14}))
			engine.Collect(made, "model")
			engine.Collect(svm.PredictSVR(rows, made, svm.PredictOptions{}), "predictions")
		}, "linear-svr")
	})
}

// TestJointIsOneAgainstTheRest requires that training several classes together gives the same
// classifiers as training each class against the rest, with every method.
func TestJointIsOneAgainstTheRest(t *testing.T) {
	table := several(90, 3, 3)
	for _, p := range []svm.LinearSVC{
		{L2: 0.05, GapTol: 1e-10}, {L2: 0.05, Squared: true, Tol: 1e-10}, {L2: 0.05, Squared: true, Method: optim.LBFGS, Tol: 1e-10},
		{L1: 0.01, Squared: true, Tol: 1e-10}, {L2: 0.1, Squared: true, Tol: 1e-10, NoIntercept: true},
	} {
		m := classify(t, table, p)
		require.Len(t, m.Coefficients, 3)
		var sum float64
		for class := range 3 {
			alone := table
			alone.Label = make([]float64, table.N)
			for i, y := range table.Label {
				if int(y) == class {
					alone.Label[i] = 1
				}
			}
			one := classify(t, alone, p)
			require.Len(t, one.Coefficients, 1)
			require.InDeltaSlice(t, one.Coefficients[0], m.Coefficients[class], 2e-4, "%+v", p)
			require.InDelta(t, one.Intercepts[0], m.Intercepts[class], 2e-4)
			sum += one.Summary.Objective
		}
		require.InEpsilon(t, sum, m.Summary.Objective, 1e-7)
		right := 0
		for i := range table.N {
			if m.Predict(table.Row(i)) == int(table.Label[i]) {
				right++
			}
		}
		require.Greater(t, right, 50)
	}
}

// TestL1MakesZeros requires that with an L1 penalty, features unrelated to the labels have
// coefficients of 0.
func TestL1MakesZeros(t *testing.T) {
	table := several(200, 2, 2)
	more := trial.Gaussian(77, 200, 10)
	for i := range table.N {
		copy(more.Row(i), table.Row(i))
	}
	more.Label, more.Weight = table.Label, table.Weight
	m := classify(t, more, svm.LinearSVC{L1: 0.1, Squared: true})
	zeros := 0
	for _, v := range m.Coefficients[0] {
		if v == 0 {
			zeros++
		}
	}
	require.GreaterOrEqual(t, zeros, 6)
	require.NotZero(t, m.Coefficients[0][0])
}

// TestWeightsAreRepetitions requires that a row of weight 2, or a row of a class of weight 2,
// counts as two rows.
func TestWeightsAreRepetitions(t *testing.T) {
	table := several(60, 2, 2)
	table.Weight = nil
	double, weighted := table, table
	double.X, double.Label = append([]float64(nil), table.X...), append([]float64(nil), table.Label...)
	for i := range table.N {
		weighted.Weight = append(weighted.Weight, 1+table.Label[i])
		if table.Label[i] == 1 {
			double.X, double.Label, double.N = append(double.X, table.Row(i)...), append(double.Label, 1), double.N+1
		}
	}
	p := svm.LinearSVC{L2: 0.1, NoStandardize: true, GapTol: 1e-11}
	want := classify(t, double, p)
	got := classify(t, weighted, p)
	require.InDeltaSlice(t, want.Coefficients[0], got.Coefficients[0], 1e-4)
	require.InEpsilon(t, want.Summary.Weight, got.Summary.Weight, 1e-12)
	p.ClassWeights = map[string]float64{"1": 2}
	byClass := classify(t, table, p)
	require.InDeltaSlice(t, want.Coefficients[0], byClass.Coefficients[0], 1e-4)
	require.InEpsilon(t, want.Summary.Objective, byClass.Summary.Objective, 1e-9)
}

// TestSVRIsNotLeastSquares requires that outliers change the coefficients little, unlike with
// least squares, and that differences within Epsilon cause no loss.
func TestSVRIsNotLeastSquares(t *testing.T) {
	table := target(300, 3)
	m := regress(t, table, svm.LinearSVR{L2: 1e-4})
	require.InDeltaSlice(t, []float64{-1, 0, 1}, m.Coefficients[0], 0.1)
	wide := regress(t, table, svm.LinearSVR{Epsilon: 100})
	require.Zero(t, wide.Summary.Objective)
	require.Equal(t, []float64{0, 0, 0}, wide.Coefficients[0])
	require.Equal(t, optim.GapClosed, wide.Summary.Reason)
}

// TestOffset requires that training with an offset gives the same model as training on the
// labels minus the offset.
func TestOffset(t *testing.T) {
	table := target(80, 2)
	table.Weight = nil
	shifted := table
	shifted.Label = append([]float64(nil), table.Label...)
	for i := range table.N {
		shifted.Offset = append(shifted.Offset, math.Cos(float64(i)))
		shifted.Label[i] += shifted.Offset[i]
	}
	p := svm.LinearSVR{Epsilon: 0.2, L2: 0.05, GapTol: 1e-10}
	want, got := regress(t, table, p), regress(t, shifted, p)
	require.InDeltaSlice(t, want.Coefficients[0], got.Coefficients[0], 1e-4)
	require.Equal(t, "offset", got.Inputs()[1].Column)
	r := trial.Run(t, func(b *engine.Builder) { engine.Collect(got.Transform(shifted.Dataset(b)), "predictions") })
	type row struct {
		Prediction float64 `column:"prediction"`
	}
	rows, err := engine.Rows[row](r, "predictions")
	require.NoError(t, err)
	require.Len(t, rows, table.N)
	for i, row := range rows {
		require.Equal(t, got.Predict(table.Row(i))+shifted.Offset[i], row.Prediction)
	}
}

// TestStart requires that training that starts at the optimum takes at most one iteration, and
// that a model with other features or classes is refused as the start.
func TestStart(t *testing.T) {
	table := several(100, 3, 3)
	p := svm.LinearSVC{Squared: true, Method: optim.LBFGS, Tol: 1e-8}
	cold := classify(t, table, p)
	require.Greater(t, cold.Summary.Iterations, 3)
	p.Start, p.Tol = cold, 1e-6
	warm := classify(t, table, p)
	require.LessOrEqual(t, warm.Summary.Iterations, 1)
	require.InEpsilon(t, cold.Summary.Objective, warm.Summary.Record[0].Loss, 1e-12)
	trial.Fails(t, trainsSVC(several(100, 2, 3), p), "the model to start from has 3 features, the rows 2")
	trial.Fails(t, trainsSVC(several(100, 3, 4), p), "the model to start from", `its classes are ["0" "1" "2"]`)
	numbers := target(60, 2)
	q := svm.LinearSVR{Squared: true, Method: optim.LBFGS, Tol: 1e-8}
	q.Start = regress(t, numbers, q)
	q.Tol = 1e-6
	require.LessOrEqual(t, regress(t, numbers, q).Summary.Iterations, 1)
}

// TestStochastic requires that SGD, which does not smooth the loss, comes near to the minimum
// of the loss.
func TestStochastic(t *testing.T) {
	table := several(150, 3, 3)
	best := classify(t, table, svm.LinearSVC{L2: 0.05})
	near := classify(t, table, svm.LinearSVC{L2: 0.05, Method: optim.SGD, MaxIter: 25, Stochastic: optim.Stochastic{Average: true}})
	require.InEpsilon(t, best.Summary.Objective, near.Summary.Objective, 0.02)
	_, ok := near.Summary.Measure(svm.DualityGap)
	require.False(t, ok)
}

// TestLabelsOfAnyType requires that classes are in the order of their values, and that
// predictions have the type of the labels.
func TestLabelsOfAnyType(t *testing.T) {
	mem := memory.NewGoAllocator()
	x := []float64{-2, -1.5, -1, 1, 1.5, 2, -1.2, 0.9}
	for _, c := range []struct {
		dt      arrow.DataType
		classes [2]string // classes of the rows with x below 0 and above 0
		sorted  []string
	}{
		{arrow.FixedWidthTypes.Boolean, [2]string{"false", "true"}, []string{"false", "true"}},
		{arrow.PrimitiveTypes.Int64, [2]string{"10", "9"}, []string{"9", "10"}},
		{arrow.BinaryTypes.String, [2]string{"yes", "no"}, []string{"no", "yes"}},
		{arrow.FixedWidthTypes.Date32, [2]string{"1999-12-31", "2026-01-01"}, []string{"1999-12-31", "2026-01-01"}},
	} {
		t.Run(c.dt.String(), func(t *testing.T) {
			features, labels := array.NewFloat64Builder(mem), array.NewBuilder(mem, c.dt)
			features.AppendValues(x, nil)
			for _, v := range x {
				text := c.classes[0]
				if v > 0 {
					text = c.classes[1]
				}
				require.NoError(t, labels.AppendValueFromString(text))
			}
			record := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64}, {Name: "y", Type: c.dt}}, nil),
				[]arrow.Array{features.NewArray(), labels.NewArray()}, int64(len(x)))
			r := trial.Run(t, func(b *engine.Builder) {
				rows := arrowbridge.FromRecords(b, []arrow.Record{record})
				made := svm.TrainSVC(rows, svm.LinearSVC{FeatureCols: []string{"x"}, LabelCol: "y"})
				engine.Collect(made, "model")
				engine.Collect(svm.PredictSVC(rows, made, svm.PredictOptions{}), "predictions")
			})
			m, err := svm.SVCModelOf(r, "model")
			require.NoError(t, err)
			require.Equal(t, c.sorted, m.Classes.Values)
			recs, err := arrowbridge.Records(r, "predictions")
			require.NoError(t, err)
			row := 0
			for _, rec := range recs {
				require.True(t, arrow.TypeEqual(c.dt, rec.Schema().Field(2).Type))
				for i := range int(rec.NumRows()) {
					require.Equal(t, record.Column(1).ValueStr(row), rec.Column(2).ValueStr(i))
					row++
				}
			}
			require.Equal(t, len(x), row)
		})
	}
}

// TestManyClasses requires that the default method is L-BFGS for more than 32 parameters.
func TestManyClasses(t *testing.T) {
	const k = 26
	table := trial.Table{D: 2}
	for i := range 4 * k {
		angle := 2 * math.Pi * float64(i%k) / k
		table.X = append(table.X, 3*math.Cos(angle)+0.01*float64(i%3), 3*math.Sin(angle))
		table.Words, table.N = append(table.Words, strconv.Itoa(i%k)), table.N+1
	}
	m := classify(t, table, svm.LinearSVC{L2: 0.001, Squared: true})
	require.Equal(t, "LBFGS", m.Summary.Method)
	require.Len(t, m.Coefficients, k)
	for i := range table.N {
		require.Equal(t, table.Words[i], m.Classes.Values[m.Predict(table.Row(i))])
	}
}
