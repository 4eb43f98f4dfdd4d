package linear_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// trains returns a function that adds a training on a table to a job.
func trains(table trial.Table, p linear.Params) func(b *engine.Builder) {
	return func(b *engine.Builder) {
		engine.Collect(linear.Train(table.Dataset(b), columns(table, p)), "model")
	}
}

// TestPublishedLeastSquares uses a published case of four rows and four coefficients, in which
// the first feature is constant. It compares the predictions of the first two rows with the
// published predictions.
func TestPublishedLeastSquares(t *testing.T) {
	table := trial.TableOf([]float64{16.8, 6.7, 6.9, 8.0}, []float64{1, 7, 9}, []float64{1, 3, 3}, []float64{1, 2, 4}, []float64{1, 3, 4})
	for _, method := range []optim.Method{optim.Auto, optim.LBFGS} {
		m := train(t, table, linear.Params{Method: method, Tol: 1e-10})
		require.InDelta(t, 16.81478873, m.Predict(table.Row(0)), 1e-8)
		require.InDelta(t, 6.77394366, m.Predict(table.Row(1)), 1e-8)
		require.Equal(t, []int{0}, m.Summary.Inference.Collinear)
		require.Equal(t, 3, m.Summary.Inference.Rank)
	}
}

// TestStandardErrorsWithCollinearFeatures adds a feature that is a linear combination of other
// features. Features outside of this combination must keep their standard errors. The added
// feature and the features of the combination must have no standard errors, because the rows do
// not determine their coefficients separately.
func TestStandardErrorsWithCollinearFeatures(t *testing.T) {
	table := target(80, 4)
	want := train(t, table, linear.Params{}).Summary.Inference
	for name, c := range map[string]struct {
		more   func(x []float64) float64
		shared []int // features of the linear combination; the added feature is the last feature
	}{
		"a twin":         {func(x []float64) float64 { return x[1] }, []int{1}},
		"two and a sum":  {func(x []float64) float64 { return x[1] - 2*x[3] + 5 }, []int{1, 3}},
		"a tenth of one": {func(x []float64) float64 { return x[0]/10 + x[2] }, []int{0, 2}},
	} {
		more := table
		more.D, more.X = 5, nil
		for i := range table.N {
			more.X = append(append(more.X, table.Row(i)...), c.more(table.Row(i)))
		}
		for _, more.Sparse = range []bool{false, true} {
			got := train(t, more, linear.Params{}).Summary.Inference
			require.Equal(t, []int{4}, got.Collinear, name)
			for j := range 4 {
				defined := !slices.Contains(c.shared, j)
				require.Equal(t, defined, got.Terms[j].Defined, "%s, sparse %v: feature %d must have a standard error only if it is outside of the linear combination", name, more.Sparse, j)
				if defined {
					require.InEpsilon(t, want.Terms[j].StdError, got.Terms[j].StdError, 1e-8)
					require.InEpsilon(t, want.Terms[j].PValue, got.Terms[j].PValue, 1e-6)
				}
			}
			require.False(t, got.Terms[4].Defined)
		}
	}
}

// target returns random rows with weights, and with labels that are linear in the features plus
// noise.
func target(n, d int) trial.Table {
	table := trial.Gaussian(3, n, d)
	noise := trial.Gaussian(4, n, 1)
	for i := range n {
		x := table.Row(i)
		y := 3 + 0.5*noise.X[i]
		for j := range x {
			x[j] = (x[j] + 0.3*float64(j)) * math.Pow(10, float64(j%4-2))
			y += x[j] * math.Cos(float64(j)) * math.Pow(10, -float64(j%4-2))
		}
		table.Label = append(table.Label, y)
		table.Weight = append(table.Weight, 0.5+float64(i%4))
	}
	return table
}

// closedForm minimises the mean weighted ½·residual² plus ½·l2·|f·w|² by the normal equations.
// f is the standard deviation of the feature if standardise is set, else 1.
func closedForm(table trial.Table, l2 float64, standardise bool) (coefficients []float64, objective float64) {
	d := table.D
	mean, std := make([]float64, d), make([]float64, d)
	var label, total float64
	weight := func(i int) float64 {
		if table.Weight == nil {
			return 1
		}
		return table.Weight[i]
	}
	y := func(i int) float64 {
		if table.Offset == nil {
			return table.Label[i]
		}
		return table.Label[i] - table.Offset[i]
	}
	for i := range table.N {
		total += weight(i)
		label += weight(i) * y(i)
		for j, x := range table.Row(i) {
			mean[j] += weight(i) * x
		}
	}
	label /= total
	for j := range mean {
		mean[j] /= total
	}
	a, b := make([][]float64, d), make([]float64, d)
	for j := range a {
		a[j] = make([]float64, d)
	}
	for i := range table.N {
		for j, x := range table.Row(i) {
			for k, z := range table.Row(i) {
				a[j][k] += weight(i) * (x - mean[j]) * (z - mean[k]) / total
			}
			b[j] += weight(i) * (x - mean[j]) * (y(i) - label) / total
		}
	}
	penalty := make([]float64, d)
	for j := range a {
		std[j] = math.Sqrt(a[j][j])
		penalty[j] = l2
		if standardise {
			penalty[j] *= a[j][j]
		}
	}
	for j := range a {
		a[j][j] += penalty[j]
	}
	w := solve(a, b)
	intercept := label
	for j, v := range w {
		intercept -= v * mean[j]
	}
	for i := range table.N {
		r := y(i) - intercept
		for j, x := range table.Row(i) {
			r -= w[j] * x
		}
		objective += 0.5 * weight(i) * r * r / total
	}
	for j, v := range w {
		objective += 0.5 * penalty[j] * v * v
	}
	return append(w, intercept), objective
}

// TestOptimumIsTheClosedForm compares least squares and ridge regression with closedForm, for
// all methods and for dense and sparse rows.
func TestOptimumIsTheClosedForm(t *testing.T) {
	table := target(200, 6)
	shifted := table
	for i := range table.N {
		shifted.Offset = append(shifted.Offset, 5*math.Sin(float64(i)))
	}
	plain := table
	plain.Weight = nil
	for name, table := range map[string]trial.Table{"weights": table, "offset": shifted, "plain": plain} {
		for _, l2 := range []float64{0, 0.1} {
			for _, original := range []bool{false, true} {
				want, objective := closedForm(table, l2, !original)
				for _, method := range []optim.Method{optim.Auto, optim.LBFGS} {
					for _, sparse := range []bool{false, true} {
						t.Run(fmt.Sprint(name, l2, original, method, sparse), func(t *testing.T) {
							table := table
							table.Sparse = sparse
							m := train(t, table, linear.Ridge(l2, linear.Params{Method: method, NoStandardize: original, Tol: 1e-9, MaxIter: 1000}))
							require.True(t, m.Summary.Converged, m.Summary.Reason)
							require.InEpsilon(t, objective, m.Summary.Objective, 1e-9)
							for j, v := range want[:table.D] {
								require.InEpsilon(t, v, m.Coefficients[0][j], 1e-6)
							}
							require.InEpsilon(t, want[table.D], m.Intercepts[0], 1e-6)
						})
					}
				}
			}
		}
	}
}

// TestCoefficientsAreScikitLearns compares the coefficients of lasso, elastic net and ridge
// with scikit-learn. The same coefficients must be 0. For ridge with n rows, alpha is L2·n.
func TestCoefficientsAreScikitLearns(t *testing.T) {
	type fit struct {
		Data         string
		Alpha, Ratio float64
		Coefficients []float64
		Intercept    float64
	}
	tables := map[string]trial.Table{"machine": machine(t), "abalone": abalone(t)}
	zeros := 0
	for _, want := range trial.JSON[[]fit](t, "scikit-learn.json") {
		t.Run(fmt.Sprint(want.Data, want.Alpha, want.Ratio), func(t *testing.T) {
			table := tables[want.Data]
			p := linear.Params{NoStandardize: true, Tol: 1e-11, MaxIter: 3000}
			switch want.Ratio {
			case -1:
				p = linear.Ridge(want.Alpha/float64(table.N), p)
			case 1:
				p = linear.Lasso(want.Alpha, p)
			default:
				p = linear.ElasticNet(want.Alpha, want.Ratio, p)
			}
			m := train(t, table, p)
			for j, v := range want.Coefficients {
				got := m.Coefficients[0][j]
				require.Equal(t, v == 0, got == 0, "coefficient %d is %v, want %v", j, got, v)
				if v == 0 {
					zeros++
				}
				require.InDelta(t, v, got, 1e-6*max(1, abs(v)), "coefficient %d", j)
			}
			require.InDelta(t, want.Intercept, m.Intercepts[0], 1e-6*abs(want.Intercept))
		})
	}
	require.Greater(t, zeros, 10)
}

// TestTables compares the tables of standard errors with tables that a program in another
// language computed by QR decomposition.
func TestTables(t *testing.T) {
	type table struct {
		B, SE, T, P           []float64
		R2, Adj, Sigma, F, FP float64
	}
	weighted := machine(t)
	for i := range weighted.N {
		weighted.Weight = append(weighted.Weight, float64(1+i%3))
	}
	tables := map[string]trial.Table{"machine": machine(t), "abalone": abalone(t), "machine weighted": weighted, "machine no intercept": machine(t)}
	for name, want := range trial.JSON[map[string]table](t, "tables.json") {
		for _, sparse := range []bool{false, true} {
			rows := tables[name]
			rows.Sparse = sparse
			m := train(t, rows, linear.Regression(linear.Params{NoIntercept: name == "machine no intercept", Tol: 1e-12}))
			require.NotNil(t, m.Summary.Inference, name)
			require.Equal(t, "t", m.Summary.Inference.Statistic)
			require.Len(t, m.Summary.Inference.Terms, len(want.B), name)
			require.Equal(t, len(want.B), m.Summary.Inference.Rank)
			require.EqualValues(t, rows.N-len(want.B), m.Summary.Inference.Freedom)
			for j, term := range m.Summary.Inference.Terms {
				require.True(t, term.Defined)
				require.InEpsilon(t, want.B[j], term.Estimate, 1e-8, "%s %s", name, term.Name)
				require.InEpsilon(t, want.SE[j], term.StdError, 1e-8, "%s %s", name, term.Name)
				require.InEpsilon(t, want.T[j], term.Statistic, 1e-8, "%s %s", name, term.Name)
				require.InEpsilon(t, want.P[j], term.PValue, 1e-6, "%s %s", name, term.Name)
			}
			for measure, v := range map[string]float64{
				linear.RSquared: want.R2, linear.AdjustedRSquared: want.Adj, linear.ResidualStdError: want.Sigma,
				linear.FStatistic: want.F, linear.FPValue: want.FP,
			} {
				got, ok := m.Summary.Measure(measure)
				require.True(t, ok, measure)
				require.InEpsilon(t, v, got, 1e-6, "%s %s", name, measure)
			}
		}
	}
}

// TestHuber requires that the optimum satisfies its condition: residuals that are clipped at
// Huber are orthogonal to the features. It also requires that an outlier changes the solution
// little.
func TestHuber(t *testing.T) {
	table := target(150, 3)
	table.Label[7] += 1e6
	const delta = 0.8
	m := train(t, table, linear.Params{Huber: delta, Tol: 1e-12, MaxIter: 500})
	sums := make([]float64, 4)
	clipped := 0
	var scale float64
	for i := range table.N {
		r := m.Predict(table.Row(i)) - table.Label[i]
		if abs(r) > delta {
			r = math.Copysign(delta, r)
			clipped++
		}
		for j, x := range table.Row(i) {
			sums[j] += table.Weight[i] * r * x
		}
		sums[3] += table.Weight[i] * r
		scale += table.Weight[i]
	}
	for _, s := range sums {
		require.InDelta(t, 0, s/scale, 1e-6)
	}
	require.Greater(t, clipped, 5)
	require.Nil(t, m.Summary.Inference)
	_, ok := m.Summary.Measure(linear.RSquared)
	require.False(t, ok)
	require.Equal(t, delta, m.Huber)
}

// TestCollinearAndConstantColumns requires that the table names collinear and constant columns,
// that no result is NaN, and that predictions are the same as without these columns. Equal
// columns must have equal coefficients, not large ones with opposite signs.
func TestCollinearAndConstantColumns(t *testing.T) {
	table := target(100, 2)
	more := table
	more.D, more.X = 5, nil
	for i := range table.N {
		x := table.Row(i)
		more.X = append(more.X, 4, x[0], x[1], x[0], x[0]-3*x[1])
	}
	want := train(t, table, linear.Params{})
	for _, sparse := range []bool{false, true} {
		for _, method := range []optim.Method{optim.Auto, optim.LBFGS} {
			more.Sparse = sparse
			got := train(t, more, linear.Params{Method: method, Tol: 1e-10})
			require.Equal(t, []int{0, 3, 4}, got.Summary.Inference.Collinear)
			require.Equal(t, 3, got.Summary.Inference.Rank)
			for _, term := range got.Summary.Inference.Terms {
				require.False(t, term.Defined, "feature %s must have no standard error, because an equal column has the same coefficient", term.Name)
			}
			for i := range table.N {
				require.InDelta(t, want.Predict(table.Row(i)), got.Predict(more.Row(i)), 1e-6)
			}
			// Equal columns have the same coefficient in the solution nearest to the start.
			require.InDelta(t, got.Coefficients[0][1], got.Coefficients[0][3], 1e-3*abs(got.Coefficients[0][1]))
			first, _ := want.Summary.Measure(linear.AdjustedRSquared)
			second, _ := got.Summary.Measure(linear.AdjustedRSquared)
			require.InEpsilon(t, first, second, 1e-9)
		}
	}
}

// TestMoreFeaturesThanRows requires that the model fits the labels exactly, and that no feature
// has a standard error.
func TestMoreFeaturesThanRows(t *testing.T) {
	table := target(8, 20)
	m := train(t, table, linear.Params{Tol: 1e-9})
	for i := range table.N {
		require.InDelta(t, table.Label[i], m.Predict(table.Row(i)), 1e-5*max(1, abs(table.Label[i])))
	}
	require.Equal(t, 8, m.Summary.Inference.Rank)
	for _, term := range m.Summary.Inference.Terms {
		require.False(t, term.Defined)
	}
	_, ok := m.Summary.Measure(linear.ResidualStdError)
	require.False(t, ok)
	one := trial.TableOf([]float64{5}, []float64{1, 2})
	require.InDelta(t, 5, train(t, one, linear.Params{}).Predict(one.Row(0)), 1e-9)
}

// TestConstantLabel requires that measures of explained variance are absent if all labels are
// equal.
func TestConstantLabel(t *testing.T) {
	table := target(30, 2)
	for i := range table.Label {
		table.Label[i] = 2
	}
	m := train(t, table, linear.Params{})
	require.InDelta(t, 2, m.Predict(table.Row(3)), 1e-9)
	_, ok := m.Summary.Measure(linear.RSquared)
	require.False(t, ok)
}

func TestSameBits(t *testing.T) {
	wild := trial.Wild(120, 3)
	wild.Offset = make([]float64, wild.N)
	for i := range wild.Offset {
		wild.Offset[i] = math.Sin(float64(i)) * math.Pow(10, float64(i%9-4))
	}
	sparse := wild
	sparse.Sparse = true
	for name, c := range map[string]struct {
		table trial.Table
		p     linear.Params
	}{
		"least squares": {wild, linear.Params{}},
		"ridge":         {sparse, linear.Ridge(0.1, linear.Params{Method: optim.LBFGS, MaxIter: 6})},
		"lasso":         {wild, linear.Lasso(0.01, linear.Params{MaxIter: 6})},
		"elastic net":   {sparse, linear.ElasticNet(0.01, 0.5, linear.Params{MaxIter: 6})},
		"huber":         {wild, linear.Params{Huber: 0.3, MaxIter: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			trial.SameBits(t, func(b *engine.Builder) {
				rows := c.table.Dataset(b)
				made := linear.Train(rows, columns(c.table, c.p))
				engine.Collect(made, "model")
				engine.Collect(linear.Predict(rows, made, linear.PredictOptions{}), "predictions")
			}, "linear")
		})
	}
}

// TestStart requires that training does no iterations if it starts at the optimum.
func TestStart(t *testing.T) {
	table := target(200, 4)
	p := linear.Ridge(0.02, linear.Params{Method: optim.LBFGS, Tol: 1e-8})
	cold := train(t, table, p)
	require.Greater(t, cold.Summary.Iterations, 2)
	p.Start, p.Tol = cold, 1e-6
	warm := train(t, table, p)
	require.Zero(t, warm.Summary.Iterations)
	require.InEpsilon(t, cold.Summary.Objective, warm.Summary.Objective, 1e-12)
}

// TestNoInference requires that NoInference omits the table of standard errors and the read of
// the rows that the table needs, and that the coefficients keep their bits.
func TestNoInference(t *testing.T) {
	table := trial.Gaussian(4, 80, 3)
	for i := range table.N {
		table.Label = append(table.Label, table.Row(i)[0]-2*table.Row(i)[2]+math.Sin(float64(i)))
	}
	with, without := train(t, table, linear.Params{}), train(t, table, linear.Params{NoInference: true})
	require.NotNil(t, with.Summary.Inference)
	require.Nil(t, without.Summary.Inference)
	require.Equal(t, with.Coefficients, without.Coefficients)
	require.Equal(t, with.Intercepts, without.Intercepts)
	require.LessOrEqual(t, without.Summary.Reads, with.Summary.Reads)
	for _, measure := range []string{linear.AdjustedRSquared, linear.ResidualStdError, linear.FStatistic} {
		_, ok := without.Summary.Measure(measure)
		require.False(t, ok, measure)
	}
	_, ok := without.Summary.Measure(linear.RSquared)
	require.True(t, ok)
}
