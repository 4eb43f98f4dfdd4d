package logistic_test

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// trains returns a function that adds a training on a table to a job.
func trains(table trial.Table, p logistic.Params) func(b *engine.Builder) {
	return func(b *engine.Builder) {
		engine.Collect(logistic.Train(table.Dataset(b), columns(table, p)), "model")
	}
}

func TestSameBits(t *testing.T) {
	wild := trial.Wild(120, 3)
	wild.Offset = make([]float64, wild.N)
	for i := range wild.Offset {
		wild.Offset[i] = math.Sin(float64(i)) * math.Pow(10, float64(i%5-4))
	}
	sparse := wild
	sparse.Sparse = true
	for name, c := range map[string]struct {
		table trial.Table
		p     logistic.Params
	}{
		"newton":  {wild, logistic.Params{MaxIter: 4, Inference: true}},
		"lbfgs":   {sparse, logistic.Params{Method: optim.LBFGS, MaxIter: 6}},
		"owlqn":   {wild, logistic.Params{L1: 0.001, L2: 0.01, MaxIter: 6}},
		"sgd":     {sparse, logistic.Params{Method: optim.SGD, MaxIter: 2, L2: 0.1}},
		"softmax": {threeClasses(150, 3), logistic.Params{MaxIter: 5, L2: 0.001, Balanced: true}},
	} {
		t.Run(name, func(t *testing.T) {
			trial.SameBits(t, func(b *engine.Builder) {
				rows := c.table.Dataset(b)
				made := logistic.Train(rows, columns(c.table, c.p))
				engine.Collect(made, "model")
				engine.Collect(logistic.Predict(rows, made, logistic.PredictOptions{}), "predictions")
			}, "logistic")
		})
	}
}

// TestStart requires that training does no iterations if it starts at the optimum.
func TestStart(t *testing.T) {
	for name, table := range map[string]trial.Table{"binary": twoClasses(200, 4), "softmax": threeClasses(200, 4)} {
		for _, sparse := range []bool{false, true} {
			table.Sparse = sparse
			p := logistic.Params{L2: 0.02, Method: optim.LBFGS, Tol: 1e-7, MaxIter: 500}
			cold := train(t, table, p)
			require.Greater(t, cold.Summary.Iterations, 3, name)
			p.Start, p.Tol = cold, 1e-6
			warm := train(t, table, p)
			require.LessOrEqual(t, warm.Summary.Iterations, 1, name)
			require.InEpsilon(t, cold.Summary.Objective, warm.Summary.Objective, 1e-10)
			require.InEpsilon(t, cold.Summary.Objective, warm.Summary.Record[0].Loss, 1e-12)
		}
	}
	two := train(t, twoClasses(100, 4), logistic.Params{L2: 0.1})
	other := twoClasses(100, 5)
	trial.Fails(t, trains(other, logistic.Params{Start: two}), "the model to start from has 4 features, the rows 5")
	three := threeClasses(100, 4)
	trial.Fails(t, trains(three, logistic.Params{Start: two}), "the model to start from", `its classes are ["0" "1"]`)
}

// TestMethodFollowsTheShape requires that Newton's method is the default for at most 32
// parameters. With several margins and at least 7 dense features it must be the default for at
// most 64 parameters.
func TestMethodFollowsTheShape(t *testing.T) {
	for _, c := range []struct {
		d, classes int
		sparse     bool
		method     string
	}{
		{31, 2, false, "Newton"}, {32, 2, false, "LBFGS"}, {11, 3, false, "Newton"}, {20, 3, false, "Newton"}, {21, 3, false, "LBFGS"},
		{11, 3, true, "LBFGS"}, {7, 8, false, "Newton"}, {6, 5, false, "LBFGS"}, {3, 8, false, "Newton"},
	} {
		table := trial.Gaussian(uint64(c.d), 60, c.d)
		table.Sparse = c.sparse
		for i := range table.N {
			table.Label = append(table.Label, float64(i%c.classes))
		}
		require.Equal(t, c.method, train(t, table, logistic.Params{L2: 0.1, MaxIter: 1}).Summary.Method, "the default method for %+v is wrong", c)
	}
}

// correlated returns rows of d features and labels that depend on all of them. Neighbouring
// features have the given correlation.
func correlated(n, d int, correlation float64) trial.Table {
	table := trial.Gaussian(uint64(n+d), n, d)
	own := math.Sqrt(1 - correlation*correlation)
	for i := range n {
		row := table.Row(i)
		var margin float64
		for j := range row {
			if j > 0 {
				row[j] = correlation*row[j-1] + own*row[j]
			}
			margin += math.Sin(float64(5*j)) * row[j]
		}
		label := 0.0
		if margin+3*math.Sin(float64(17*i)) > 0 {
			label = 1
		}
		table.Label = append(table.Label, label)
	}
	return table
}

// TestNewtonTakesOver requires that the default method changes from LBFGS to Newton's method if
// features correlate, and then needs far fewer iterations than LBFGS alone. It must not change
// if features do not correlate. The change must be at the same iteration at any parallelism.
func TestNewtonTakesOver(t *testing.T) {
	for _, d := range []int{40, 90} {
		table := correlated(400, d, 0.99)
		p := logistic.Params{L2: 1e-5, MaxIter: 1000, Tol: 1e-9}
		got := train(t, table, p)
		p.Method = optim.LBFGS
		slow := train(t, table, p)
		p.Method = optim.Newton
		best := train(t, table, p)
		require.Equal(t, "Newton", got.Summary.Method)
		require.True(t, got.Summary.Converged)
		require.InEpsilon(t, best.Summary.Objective, got.Summary.Objective, 1e-12)
		require.Less(t, 2*got.Summary.Iterations, slow.Summary.Iterations)
		require.Greater(t, got.Summary.Iterations, best.Summary.Iterations)

		plain := train(t, correlated(400, d, 0), logistic.Params{L2: 1e-2, Tol: 1e-6})
		require.Equal(t, "LBFGS", plain.Summary.Method)

		table.Sparse = d == 90
		trial.SameBits(t, func(b *engine.Builder) {
			engine.Collect(logistic.Train(table.Dataset(b), logistic.Params{LabelCol: "label", L2: 1e-5, MaxIter: 40}), "model")
		}, "logistic")
	}
}

// TestSGDTakesManyRowsAtATime requires that a step of SGD may take any number of sparse rows of
// one shard.
func TestSGDTakesManyRowsAtATime(t *testing.T) {
	for _, n := range []int{243, 244, 257, 300} {
		table := trial.Gaussian(3, n, 3)
		table.Sparse = true
		for i := range n {
			table.Label = append(table.Label, float64(i%3))
		}
		p := logistic.Params{LabelCol: "label", Method: optim.SGD, MaxIter: 2, Stochastic: optim.Stochastic{Batch: n}}
		trial.Run(t, func(b *engine.Builder) { engine.Collect(logistic.Train(table.Dataset(b), p), "model") },
			engine.Shards(1), engine.Parallelism(1))
	}
}

// TestParametersWhoseSquaresOverflow requires that training without a penalty works with
// parameters whose squares overflow. Only a penalty needs the squares.
func TestParametersWhoseSquaresOverflow(t *testing.T) {
	p := logistic.Params{Method: optim.SGD, MaxIter: 2, Stochastic: optim.Stochastic{Rate: 1e200}}
	m := train(t, correlated(200, 3, 0), p)
	require.Greater(t, m.Summary.Loss, 1e190)
	require.Equal(t, m.Summary.Objective, m.Summary.Loss)
	require.Equal(t, optim.Overshooting, m.Summary.Reason)
	require.False(t, m.Summary.Converged)
}

// TestQuasiSeparable trains without a penalty on rows with a column that separates some rows of
// one class, so that its coefficient has no bound. Training must report divergence, although
// LBFGS alone would end with a small gradient.
func TestQuasiSeparable(t *testing.T) {
	table := correlated(1000, 40, 0.95)
	for i := range table.N {
		row := table.Row(i)
		row[0] = 0
		if table.Label[i] == 0 && i%3 == 0 {
			row[0] = 1
		}
	}
	m := train(t, table, logistic.Params{MaxIter: 300})
	require.Equal(t, "Newton", m.Summary.Method)
	require.False(t, m.Summary.Converged)
	require.Equal(t, optim.Diverging, m.Summary.Reason)
	table = correlated(1000, 40, 0.95)
	require.True(t, train(t, table, logistic.Params{MaxIter: 300}).Summary.Converged)
}

// TestNoMoreIterations requires that MaxIter ends training even when the optimiser would
// otherwise continue, because the last step reduced the gradient too little.
func TestNoMoreIterations(t *testing.T) {
	table := trial.TableOf([]float64{1, 1, 1, 1, 0, 1, 0, 1, 0, 1}, []float64{1}, []float64{1}, []float64{1}, []float64{0}, []float64{0}, []float64{0}, []float64{0}, []float64{0}, []float64{0}, []float64{0})
	whole := train(t, table, logistic.Params{Tol: 1e-4})
	require.Equal(t, optim.Diverging, whole.Summary.Reason)
	for most := 1; most <= whole.Summary.Iterations; most++ {
		m := train(t, table, logistic.Params{Tol: 1e-4, MaxIter: most})
		require.LessOrEqual(t, m.Summary.Iterations, most)
		require.NotEmpty(t, m.Summary.Reason)
	}
}

// TestSeparable requires that training reports divergence if classes are separable and there is
// no penalty.
func TestSeparable(t *testing.T) {
	table := trial.TableOf([]float64{0, 0, 0, 1, 1, 1}, []float64{-3}, []float64{-2}, []float64{-1}, []float64{1}, []float64{2}, []float64{4})
	for _, method := range []optim.Method{optim.Auto, optim.LBFGS} {
		p := columns(table, logistic.Params{Method: method, Inference: true})
		r := trial.Run(t, func(b *engine.Builder) { engine.Collect(logistic.Train(table.Dataset(b), p), "model") })
		m, err := logistic.ModelOf(r, "model")
		require.NoError(t, err)
		require.Equal(t, optim.Diverging, m.Summary.Reason)
		require.False(t, m.Summary.Converged)
		require.Nil(t, m.Summary.Inference)
		require.Contains(t, r.Summary(), "warnings: training diverges, no optimum")
	}
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(logistic.Train(table.Dataset(b), columns(table, logistic.Params{L2: 0.1})), "model")
	})
	m, err := logistic.ModelOf(r, "model")
	require.NoError(t, err)
	require.True(t, m.Summary.Converged)
	require.NotContains(t, r.Summary(), "warnings")
}

// TestCollinearAndConstantColumns requires that no result is NaN if columns are collinear or
// constant, and that predictions are the same as without these columns.
func TestCollinearAndConstantColumns(t *testing.T) {
	table := twoClasses(150, 2)
	more := table
	more.D, more.X = 5, nil
	for i := range table.N {
		x := table.Row(i)
		more.X = append(more.X, 7, x[0], x[1], x[0]+x[1], 2*x[1])
	}
	want := train(t, table, logistic.Params{Tol: 1e-9})
	for _, sparse := range []bool{false, true} {
		more.Sparse = sparse
		got := train(t, more, logistic.Params{Tol: 1e-9, Inference: true})
		require.Equal(t, []int{0, 3, 4}, got.Summary.Inference.Collinear)
		require.Equal(t, 3, got.Summary.Inference.Rank)
		for i := range table.N {
			require.InDeltaSlice(t, probabilities(t, want, table.Row(i)), probabilities(t, got, more.Row(i)), 1e-6)
		}
	}
}

// TestMoreFeaturesThanRows requires that training finds the unique optimum with a penalty.
// Without a penalty it must report divergence, because the classes are separable.
func TestMoreFeaturesThanRows(t *testing.T) {
	table := twoClasses(12, 30)
	m := train(t, table, logistic.Params{L2: 0.1, Tol: 1e-9})
	require.True(t, m.Summary.Converged)
	require.InEpsilon(t, newReference(table, 1, 0.1).minimum(t), m.Summary.Objective, 1e-9)
	require.Equal(t, optim.Diverging, train(t, table, logistic.Params{}).Summary.Reason)
}

// TestLabelsOfAnyType requires that classes are in the order of their values, and that
// predictions have the type of the labels.
func TestLabelsOfAnyType(t *testing.T) {
	mem := memory.NewGoAllocator()
	x := []float64{-2, -1.5, -1, 1, 1.5, 2, -1.2, 0.9}
	second := []bool{false, false, false, true, true, true, false, true}
	for _, c := range []struct {
		dt            arrow.DataType
		texts         [2]string
		classes       []string
		firstIsSecond bool // whether the class of the first text has index 1
	}{
		{arrow.FixedWidthTypes.Boolean, [2]string{"false", "true"}, []string{"false", "true"}, false},
		{arrow.PrimitiveTypes.Int64, [2]string{"10", "9"}, []string{"9", "10"}, true},
		{arrow.PrimitiveTypes.Int8, [2]string{"-1", "1"}, []string{"-1", "1"}, false},
		{arrow.PrimitiveTypes.Uint64, [2]string{"3", "18446744073709551615"}, []string{"3", "18446744073709551615"}, false},
		{arrow.PrimitiveTypes.Float64, [2]string{"-0.5", "1e+300"}, []string{"-0.5", "1e+300"}, false},
		{arrow.PrimitiveTypes.Float32, [2]string{"0.1", "0.2"}, []string{"0.1", "0.2"}, false},
		{arrow.BinaryTypes.String, [2]string{"yes", "no"}, []string{"no", "yes"}, true},
		{arrow.FixedWidthTypes.Date32, [2]string{"1999-12-31", "2026-01-01"}, []string{"1999-12-31", "2026-01-01"}, false},
	} {
		t.Run(c.dt.String(), func(t *testing.T) {
			features, labels := array.NewFloat64Builder(mem), array.NewBuilder(mem, c.dt)
			features.AppendValues(x, nil)
			for _, s := range second {
				text := c.texts[0]
				if s {
					text = c.texts[1]
				}
				require.NoError(t, labels.AppendValueFromString(text))
			}
			record := array.NewRecord(arrow.NewSchema([]arrow.Field{
				{Name: "x", Type: arrow.PrimitiveTypes.Float64}, {Name: "y", Type: c.dt},
			}, nil), []arrow.Array{features.NewArray(), labels.NewArray()}, int64(len(x)))
			r := trial.Run(t, func(b *engine.Builder) {
				rows := arrowbridge.FromRecords(b, []arrow.Record{record})
				made := logistic.Train(rows, logistic.Params{FeatureCols: []string{"x"}, LabelCol: "y", L2: 0.1})
				engine.Collect(made, "model")
				engine.Collect(logistic.Predict(rows, made, logistic.PredictOptions{}), "predictions")
			})
			m, err := logistic.ModelOf(r, "model")
			require.NoError(t, err)
			require.Equal(t, c.classes, m.Classes.Values)
			for i, v := range x {
				class := m.Predict([]float64{v})
				require.Equal(t, second[i] != c.firstIsSecond, class == 1)
			}
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

func TestThreshold(t *testing.T) {
	table := twoClasses(100, 2)
	low, high := train(t, table, logistic.Params{Threshold: 0.01}), train(t, table, logistic.Params{Threshold: 0.99})
	var ones [2]int
	for i := range table.N {
		p := probabilities(t, low, table.Row(i))
		require.Equal(t, p[1] > 0.01, low.Predict(table.Row(i)) == 1)
		ones[0] += low.Predict(table.Row(i))
		ones[1] += high.Predict(table.Row(i))
	}
	require.Greater(t, ones[0], ones[1])
	trial.Fails(t, trains(threeClasses(60, 2), logistic.Params{Threshold: 0.3}), "3 classes: Threshold is for two")
}
