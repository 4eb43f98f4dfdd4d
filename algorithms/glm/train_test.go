package glm_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

func TestSameBits(t *testing.T) {
	wild := trial.Wild(100, 3)
	table := counts(90, 3)
	sparse := counts(90, 3)
	sparse.Sparse = true
	for i := range sparse.N {
		sparse.Offset = append(sparse.Offset, math.Sin(float64(i)))
	}
	for name, c := range map[string]struct {
		table trial.Table
		p     glm.Params
	}{
		"wild":     {wild, glm.Params{Family: glm.Binomial, MaxIter: 4}},
		"poisson":  {sparse, glm.Params{Family: glm.Poisson}},
		"identity": {table, glm.Params{Family: glm.Gamma, Link: glm.Identity}},
		"tweedie":  {table, glm.Params{Family: glm.Tweedie, L1: 0.01, L2: 0.01, MaxIter: 8}},
		"lbfgs":    {sparse, glm.Params{Family: glm.Gamma, Method: optim.LBFGS, MaxIter: 8}},
		"sgd":      {sparse, glm.Params{Family: glm.Gamma, Method: optim.SGD, MaxIter: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			trial.SameBits(t, func(b *engine.Builder) {
				rows := c.table.Dataset(b)
				made := glm.Train(rows, columns(c.table, c.p))
				engine.Collect(made, "model")
				engine.Collect(glm.Predict(rows, made, glm.PredictOptions{}), "predictions")
			}, "glm")
		})
	}
}

// TestLabelsFarFromTheModel requires that training reaches the optimum in few iterations, even
// for labels that spread over many orders of magnitude. For such labels the second derivatives
// are far from the expected ones. At the optimum, Σ x·(y − mean)/mean^(power−1) is 0. Standard
// errors must come from the expected derivatives: for Gamma with the link Log, from (XᵀX)⁻¹
// times the dispersion.
func TestLabelsFarFromTheModel(t *testing.T) {
	table := trial.Gaussian(3, 200, 1)
	for i := range table.N {
		table.Label = append(table.Label, math.Exp(table.X[i]+5*math.Sin(float64(13*i))))
	}
	for _, p := range []glm.Params{{Family: glm.Gamma, Link: glm.Log}, {Family: glm.Tweedie, Link: glm.Log, Power: 1.7}} {
		m := train(t, table, p)
		require.True(t, m.Summary.Converged)
		require.Less(t, m.Summary.Iterations, 12, "%v", p.Family)
		power := p.Power
		if p.Family == glm.Gamma {
			power = 2
		}
		var sums, sizes [2]float64
		var n, x1, x2, pearson float64
		for i, y := range table.Label {
			x := table.X[i]
			mean := m.Predict(table.Row(i))
			slope := (y - mean) / math.Pow(mean, power-1)
			for j, v := range []float64{1, x} {
				sums[j] += v * slope
				sizes[j] += math.Abs(v * slope)
			}
			n, x1, x2, pearson = n+1, x1+x, x2+x*x, pearson+(y-mean)*(y-mean)/math.Pow(mean, power)
		}
		for j := range sums {
			require.InDelta(t, 0, sums[j], 1e-7*sizes[j], "%v", p.Family)
		}
		if p.Family == glm.Gamma {
			dispersion := pearson / (n - 2)
			terms := m.Summary.Inference.Terms
			require.InEpsilon(t, math.Sqrt(dispersion*n/(n*x2-x1*x1)), terms[0].StdError, 1e-9)
			require.InEpsilon(t, math.Sqrt(dispersion*x2/(n*x2-x1*x1)), terms[1].StdError, 1e-9)
		}
	}
}

// TestFarFromTheStart requires that convergence is not judged by the scale of the first
// gradient. Without an intercept, training begins at a mean of 1, and the first gradient is as
// large as the labels.
func TestFarFromTheStart(t *testing.T) {
	for _, scale := range []float64{1e-8, 100, 1e8} {
		table := trial.TableOf([]float64{scale, 2 * scale, 3 * scale, 5 * scale}, []float64{1, 0}, []float64{1, 0}, []float64{0, 1}, []float64{0, 1})
		for _, p := range []glm.Params{{Family: glm.Gamma, Link: glm.Log}, {Family: glm.Tweedie, Link: glm.Log}, {Family: glm.Poisson}, {Family: glm.Tweedie, Link: glm.Log, Power: 3}} {
			if p.Power == 3 && scale == 1e8 {
				continue // at a mean of 1, the loss tells only that the optimum is far away
			}
			p.NoIntercept = true
			m := train(t, table, p)
			require.True(t, m.Summary.Converged, "%v, %v", p.Family, scale)
			require.InEpsilon(t, 1.5*scale, m.Predict([]float64{1, 0}), 1e-4, "%v, %v", p.Family, scale)
			require.InEpsilon(t, 4*scale, m.Predict([]float64{0, 1}), 1e-4, "%v, %v", p.Family, scale)
		}
	}
}

func TestBadParams(t *testing.T) {
	table := counts(20, 2)
	for text, p := range map[string]glm.Params{
		"L1 is -1":                                 {L1: -1},
		"L2 is NaN":                                {L2: math.NaN()},
		"Family(9) is not one of the":              {Family: 9},
		"has no link Link(8)":                      {Link: 8},
		"the family poisson has no link logit":     {Family: glm.Poisson, Link: glm.Logit},
		"the parameter Power is 1:":                {Family: glm.Tweedie, Power: 1},
		"the parameter Power is NaN":               {Family: glm.Tweedie, Power: math.NaN()},
		"which is for the family tweedie":          {Power: 1.5},
		"NoIntercept is set with the link inverse": {Family: glm.Gamma, Link: glm.Inverse, NoIntercept: true},
		"MaxIter is -1":                            {MaxIter: -1},
		"both VectorCol":                           {VectorCol: "features", FeatureCols: []string{"id"}},
		`"feature"`:                                {VectorCol: "feature"},
	} {
		p.LabelCol = "label"
		trial.Fails(t, func(b *engine.Builder) { engine.Collect(glm.Train(table.Dataset(b), p), "model") }, "glm.Train", text)
	}
	require.ErrorContains(t, glm.Params{}.Validate(), "LabelCol is empty")
	trial.Fails(t, func(b *engine.Builder) { glm.Train(nil, glm.Params{LabelCol: "y"}) }, "the dataset is nil")
	var f glm.Family
	require.NoError(t, f.UnmarshalText([]byte("gamma")))
	require.Equal(t, glm.Gamma, f)
	require.ErrorContains(t, f.UnmarshalText([]byte("x")), "unknown family")
	var l glm.Link
	require.ErrorContains(t, l.UnmarshalText([]byte("x")), "unknown link")
	_, err := glm.Link(9).MarshalText()
	require.Error(t, err)
	_, err = glm.Family(-1).MarshalText()
	require.Error(t, err)
}

func TestBadRows(t *testing.T) {
	weightless, infinite, wrong, negative := counts(20, 2), counts(20, 2), counts(20, 2), counts(20, 2)
	clear(weightless.Weight)
	infinite.Label[11], wrong.X[5], negative.Weight[3] = math.Inf(-1), math.NaN(), -1
	for text, table := range map[string]trial.Table{
		"every weight":      weightless,
		`column "label"`:    infinite,
		`column "features"`: wrong,
		`column "weight"`:   negative,
		"no rows":           {D: 2, Label: []float64{}},
	} {
		trial.Fails(t, trains(table, glm.Params{Family: glm.Poisson}), text)
	}
	m := train(t, wrong, glm.Params{Family: glm.Poisson, Skip: true})
	require.EqualValues(t, 19, m.Summary.Rows)
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(glm.Predict(wrong.Dataset(b), m.Dataset(b), glm.PredictOptions{}), "predictions")
	}, "row 0 of the shard", "component 1 is NaN")
}

// TestOutcomes requires that labels of Binomial whose mean is 0 or 1 are refused as a single
// class only if all are equal. Otherwise the error must name the row of a bad label, or the
// weights.
func TestOutcomes(t *testing.T) {
	binomial := func(weight float64, labels ...float64) trial.Table {
		table := trial.Gaussian(3, len(labels), 2)
		table.Label = labels
		for _, y := range labels {
			w := 1.0
			if y != labels[0] {
				w = weight
			}
			table.Weight = append(table.Weight, w)
		}
		return table
	}
	for text, table := range map[string]trial.Table{
		`every label in column "label" is "0": a classifier needs two classes or more`:                                                                   binomial(1, 0, 0, 0, 0),
		`every label in column "label" is "1": a classifier needs two classes or more`:                                                                   binomial(1, 1, 1, 1),
		"row 0 of the shard: the label -1 is no proportion: values of the family binomial are from 0 to 1":                                               binomial(1, 1, -1, 1, -1),
		"row 0 of the shard: the label 2 is no proportion":                                                                                               binomial(1, 2, 0, 2, 0),
		"row 0 of the shard: the label -1 is no proportion":                                                                                              binomial(1, -1, -1, -1),
		`the weighted mean of column "label" is 0, as if every label were 0: rows with other labels have weight 0`:                                       binomial(0, 0, 1, 0, 1),
		`the weighted mean of column "label" is 1, as if every label were 1: rows with other labels have weight 0, or too little weight to count; leave`: binomial(0, 1, 1, 0.5),
	} {
		trial.Fails(t, trains(table, glm.Params{Family: glm.Binomial}), text)
	}
}

// TestRowsWithLittleInformation requires that training succeeds on one row, on equal labels, on
// more features than rows, on classes that a plane separates, and on counts that are all 0.
func TestRowsWithLittleInformation(t *testing.T) {
	for _, family := range []glm.Family{glm.Gaussian, glm.Poisson, glm.Gamma, glm.Tweedie} {
		m := train(t, trial.TableOf([]float64{7}, []float64{2, 3}), glm.Params{Family: family})
		require.InEpsilon(t, 7, m.Predict([]float64{2, 3}), 1e-6, family)
		for _, term := range m.Summary.Inference.Terms[:2] {
			require.False(t, term.Defined)
		}
		alike := counts(30, 2)
		for i := range alike.Label {
			alike.Label[i] = 4
		}
		same := train(t, alike, glm.Params{Family: family})
		require.InDelta(t, 4, same.Predict([]float64{5, -5}), 1e-6)
		deviance, ok := same.Summary.Measure(glm.Deviance)
		require.True(t, ok)
		require.InDelta(t, 0, deviance, 1e-9)
		wide := counts(8, 20)
		fitted := train(t, wide, glm.Params{Family: family, L2: 0.01})
		require.True(t, fitted.Summary.Converged, "%v: %v", family, fitted.Summary.Reason)
	}
	apart := trial.TableOf([]float64{0, 0, 0, 1, 1, 1}, []float64{-3}, []float64{-2}, []float64{-1}, []float64{1}, []float64{2}, []float64{4})
	m := train(t, apart, glm.Params{Family: glm.Binomial})
	require.Equal(t, optim.Diverging, m.Summary.Reason)
	require.Nil(t, m.Summary.Inference)
	nothing := trial.TableOf(make([]float64, 6), []float64{-3}, []float64{-2}, []float64{-1}, []float64{1}, []float64{2}, []float64{4})
	zero := train(t, nothing, glm.Params{Family: glm.Poisson})
	require.Less(t, zero.Predict([]float64{1}), 1e-3)
	_, ok := zero.Summary.Measure(glm.NullDeviance)
	require.False(t, ok, "the null model has no optimum, so there must be no null deviance")
}

// TestCollinearAndConstantColumns requires that the table names collinear and constant columns,
// and that predictions are the same as without these columns.
func TestCollinearAndConstantColumns(t *testing.T) {
	table := counts(100, 2)
	more := table
	more.D, more.X = 5, nil
	for i := range table.N {
		x := table.Row(i)
		more.X = append(more.X, 7, x[0], x[1], x[0]+x[1], 2*x[1])
	}
	want := train(t, table, glm.Params{Family: glm.Gamma})
	for _, sparse := range []bool{false, true} {
		more.Sparse = sparse
		got := train(t, more, glm.Params{Family: glm.Gamma})
		require.Equal(t, []int{0, 3, 4}, got.Summary.Inference.Collinear)
		require.Equal(t, 97.0, got.Summary.Inference.Freedom)
		for i := range table.N {
			require.InEpsilon(t, want.Predict(table.Row(i)), got.Predict(more.Row(i)), 1e-6)
		}
	}
}

func TestNoInterceptAndNoInference(t *testing.T) {
	table := counts(60, 3)
	m := train(t, table, glm.Params{Family: glm.Poisson, NoIntercept: true, Tol: 1e-11})
	require.Zero(t, m.Intercepts[0])
	require.Len(t, m.Summary.Inference.Terms, 3)
	var score [3]float64 // at the optimum, residuals are orthogonal to features
	for i := range table.N {
		for j, x := range table.Row(i) {
			score[j] += table.Weight[i] * x * (table.Label[i] - m.Predict(table.Row(i)))
		}
	}
	require.InDeltaSlice(t, []float64{0, 0, 0}, score[:], 1e-6)
	null, ok := m.Summary.Measure(glm.NullDeviance)
	require.True(t, ok)
	want := 0.0 // the deviance at means of 1
	for i, y := range table.Label {
		want += 2 * table.Weight[i] * (y*math.Log(y) - (y - 1))
	}
	require.InEpsilon(t, want, null, 1e-12)
	with := train(t, table, glm.Params{Family: glm.Poisson})
	without := train(t, table, glm.Params{Family: glm.Poisson, NoInference: true})
	require.Nil(t, without.Summary.Inference)
	require.InDeltaSlice(t, with.Coefficients[0], without.Coefficients[0], 1e-7)
}

// TestL1MakesZeros requires that with an L1 penalty, features unrelated to the labels have
// coefficients of 0.
func TestL1MakesZeros(t *testing.T) {
	table := trial.Gaussian(5, 300, 8)
	for i := range table.N {
		table.Label = append(table.Label, math.Exp(0.5*table.Row(i)[2]))
	}
	m := train(t, table, glm.Params{Family: glm.Gamma, L1: 0.1})
	for j, v := range m.Coefficients[0] {
		require.Equal(t, j == 2, v != 0, j)
	}
	require.InDelta(t, 0.4, m.Coefficients[0][2], 0.05, "want 0.5 minus the penalty divided by the information, which is 1")
}

// TestStart requires that training that starts from a model of the same rows ends without
// further iterations.
func TestStart(t *testing.T) {
	table := counts(200, 3)
	moved := counts(200, 3)
	for i := range moved.N {
		moved.Offset = append(moved.Offset, 0.3*math.Cos(float64(i)))
	}
	for _, c := range []struct {
		table trial.Table
		p     glm.Params
	}{
		{table, glm.Params{Family: glm.Poisson}},
		{moved, glm.Params{Family: glm.Poisson, Method: optim.LBFGS, L2: 1e-3}},
		{table, glm.Params{Family: glm.Gamma, Link: glm.Log, L1: 1e-3}},
		{table, glm.Params{Family: glm.Poisson, NoIntercept: true}},
	} {
		cold := train(t, c.table, c.p)
		require.True(t, cold.Summary.Converged)
		require.Greater(t, cold.Summary.Iterations, 1)
		c.p.Start, c.p.Tol = cold, 1e-6
		warm := train(t, c.table, c.p)
		require.LessOrEqual(t, warm.Summary.Iterations, 1)
		require.InEpsilon(t, cold.Summary.Objective, warm.Summary.Record[0].Loss, 1e-10)
		require.InEpsilonSlice(t, cold.Coefficients[0], warm.Coefficients[0], 1e-4)
		require.InDelta(t, cold.Intercepts[0], warm.Intercepts[0], 1e-4)
		for _, measure := range []string{glm.NullDeviance, glm.AIC} {
			want, defined := cold.Summary.Measure(measure)
			got, ok := warm.Summary.Measure(measure)
			require.Equal(t, defined, ok, measure)
			if ok {
				require.InEpsilon(t, want, got, 1e-8, measure)
			}
		}
	}
	poisson := train(t, table, glm.Params{Family: glm.Poisson})
	trial.Fails(t, trains(table, glm.Params{Family: glm.Gamma, Start: poisson}), "the model to start from has the family poisson and the link log, and these are gamma and log")
	trial.Fails(t, trains(counts(50, 4), glm.Params{Family: glm.Poisson, Start: poisson}), "the model to start from has 3 features, the rows 4")
}
