package logistic_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/optimize"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// reference computes the textbook objective of k classes: mean weighted cross entropy plus
// ½·L2·|w|². Features are standardised by weighted means and standard deviations. k = 1 means
// two classes with one margin.
type reference struct {
	table trial.Table
	k     int
	l2    float64
	mean  []float64
	std   []float64
}

func newReference(table trial.Table, k int, l2 float64) *reference {
	r := &reference{table: table, k: k, l2: l2, mean: make([]float64, table.D), std: make([]float64, table.D)}
	for j := range table.D {
		var w, sum, squares float64
		for i := range table.N {
			w += r.weight(i)
			sum += r.weight(i) * table.Row(i)[j]
		}
		r.mean[j] = sum / w
		for i := range table.N {
			d := table.Row(i)[j] - r.mean[j]
			squares += r.weight(i) * d * d
		}
		r.std[j] = math.Sqrt(squares / w)
	}
	return r
}

func (r *reference) weight(i int) float64 {
	if r.table.Weight == nil {
		return 1
	}
	return r.table.Weight[i]
}

// evaluate returns the objective. It writes the gradient to g unless g is nil.
func (r *reference) evaluate(v, g []float64) float64 {
	d, k := r.table.D, r.k
	for i := range g {
		g[i] = 0
	}
	var loss, total float64
	for i := range r.table.N {
		x, w, y := r.table.Row(i), r.weight(i), int(r.table.Label[i])
		m := make([]float64, max(k, 2))
		for a := range k {
			at := a
			if k == 1 {
				at = 1
			}
			m[at] = v[a*(d+1)+d]
			for j, xj := range x {
				m[at] += v[a*(d+1)+j] * (xj - r.mean[j]) / r.std[j]
			}
			if r.table.Offset != nil {
				m[at] += r.table.Offset[i]
			}
		}
		top := math.Inf(-1)
		for _, f := range m {
			top = math.Max(top, f)
		}
		var z float64
		for _, f := range m {
			z += math.Exp(f - top)
		}
		loss += w * (top + math.Log(z) - m[y])
		total += w
		if g == nil {
			continue
		}
		for a := range k {
			at := a
			if k == 1 {
				at = 1
			}
			slope := math.Exp(m[at]-top) / z
			if at == y {
				slope--
			}
			for j, xj := range x {
				g[a*(d+1)+j] += w * slope * (xj - r.mean[j]) / r.std[j]
			}
			g[a*(d+1)+d] += w * slope
		}
	}
	loss /= total
	for i := range g {
		g[i] /= total
	}
	for a := range k {
		for j := range d {
			at := a*(d+1) + j
			loss += 0.5 * r.l2 * v[at] * v[at]
			if g != nil {
				g[at] += r.l2 * v[at]
			}
		}
	}
	return loss
}

// minimum returns the minimum that gonum finds in at most 2000 iterations.
func (r *reference) minimum(t *testing.T) float64 {
	t.Helper()
	p := optimize.Problem{
		Func: func(v []float64) float64 { return r.evaluate(v, nil) },
		Grad: func(g, v []float64) { r.evaluate(v, g) },
	}
	n := r.k * (r.table.D + 1)
	result, err := optimize.Minimize(p, make([]float64, n), &optimize.Settings{GradientThreshold: 1e-12, Converger: optimize.NeverTerminate{}, MajorIterations: 2000}, &optimize.BFGS{})
	require.NotNil(t, result, err) // err may be set: rounding errors may end the line search
	return result.F
}

// at returns the objective at the parameters of a model.
func (r *reference) at(m *logistic.Model) float64 {
	d := r.table.D
	v := make([]float64, r.k*(d+1))
	for a, own := range m.Coefficients {
		for j, b := range own {
			v[a*(d+1)+j] = b * r.std[j]
			v[a*(d+1)+d] += b * r.mean[j]
		}
		v[a*(d+1)+d] += m.Intercepts[a]
	}
	return r.evaluate(v, nil)
}

// threeClasses returns random rows with weights, and with classes 0, 1 and 2 that depend on the
// features plus noise. Features have different scales.
func threeClasses(n, d int) trial.Table {
	table := trial.Gaussian(5, n, d)
	noise := trial.Gaussian(6, n, 3)
	for i := range n {
		x := table.Row(i)
		best, at := math.Inf(-1), 0
		for a := range 3 {
			s := noise.Row(i)[a]
			for j, v := range x {
				s += v * math.Sin(float64(3*a+j))
			}
			if s > best {
				best, at = s, a
			}
		}
		table.Label = append(table.Label, float64(at))
		table.Weight = append(table.Weight, float64(1+i%3))
		for j := range x {
			x[j] = x[j]*math.Pow(10, float64(j%3-1)) + float64(j)
		}
	}
	return table
}

// twoClasses returns the rows of threeClasses with the last two classes merged into one.
func twoClasses(n, d int) trial.Table {
	table := threeClasses(n, d)
	for i, y := range table.Label {
		table.Label[i] = math.Min(y, 1)
	}
	return table
}

// TestOptimumIsThatOfAnIndependentSolver compares the textbook objective of trained models with
// the minimum that gonum finds.
func TestOptimumIsThatOfAnIndependentSolver(t *testing.T) {
	shifted := twoClasses(200, 4)
	for i := range shifted.N {
		shifted.Offset = append(shifted.Offset, math.Cos(float64(i)))
	}
	for _, c := range []struct {
		name  string
		table trial.Table
		k     int
	}{{"binary", twoClasses(300, 5), 1}, {"softmax", threeClasses(300, 4), 3}, {"offset", shifted, 1}} {
		for _, l2 := range []float64{0, 0.03} {
			want := newReference(c.table, c.k, l2)
			minimum := want.minimum(t)
			for _, method := range []optim.Method{optim.Auto, optim.Newton, optim.LBFGS, optim.GD} {
				t.Run(fmt.Sprint(c.name, " ", l2, " ", method), func(t *testing.T) {
					m := train(t, c.table, logistic.Params{L2: l2, Method: method, Tol: 1e-8, MaxIter: 3000})
					got := want.at(m)
					require.InEpsilon(t, minimum, got, 1e-9)
					require.InEpsilon(t, got, m.Summary.Objective, 1e-12)
					var penalty float64
					for _, own := range m.Coefficients {
						for j, b := range own {
							penalty += 0.5 * l2 * b * b * want.std[j] * want.std[j]
						}
					}
					require.InEpsilon(t, got-penalty, m.Summary.Loss, 1e-10)
				})
			}
		}
	}
}

// TestBalancedAndClassWeights requires that class weights have the effect of row weights.
func TestBalancedAndClassWeights(t *testing.T) {
	table := twoClasses(200, 3)
	var first, all float64
	for i, y := range table.Label {
		all += table.Weight[i]
		if y == 0 {
			first += table.Weight[i]
		}
	}
	for _, c := range []struct {
		p     logistic.Params
		byRow [2]float64
	}{
		{logistic.Params{ClassWeights: map[string]float64{"1": 2.5}}, [2]float64{1, 2.5}},
		{logistic.Params{Balanced: true}, [2]float64{all / (2 * first), all / (2 * (all - first))}},
	} {
		weighted := table
		weighted.Weight = nil
		for i, w := range table.Weight {
			weighted.Weight = append(weighted.Weight, w*c.byRow[int(table.Label[i])])
		}
		want := train(t, weighted, logistic.Params{Tol: 1e-10})
		c.p.Tol = 1e-10
		got := train(t, table, c.p)
		require.InDeltaSlice(t, want.Coefficients[0], got.Coefficients[0], 1e-8)
		require.InDelta(t, want.Summary.Weight, got.Summary.Weight, 1e-9)
		_, ok := got.Summary.Measure(logistic.NullLogLikelihood)
		require.False(t, ok)
	}
	trial.Fails(t, trains(table, logistic.Params{ClassWeights: map[string]float64{"7": 1}}), `"7", which is no class`)
}

// TestSoftmaxOfTwoClassesIsBinary requires that a multinomial model of two classes, trained
// with twice the penalty, gives the same probabilities as the binary model.
func TestSoftmaxOfTwoClassesIsBinary(t *testing.T) {
	table := trial.Heart(t)
	one := train(t, table, logistic.Params{L2: 0.05, Tol: 1e-10})
	both := train(t, table, logistic.Params{L2: 0.1, Family: logistic.Multinomial, Tol: 1e-10})
	require.Len(t, one.Coefficients, 1)
	require.Len(t, both.Coefficients, 2)
	for i := range table.N {
		require.InDeltaSlice(t, probabilities(t, one, table.Row(i)), probabilities(t, both, table.Row(i)), 1e-8)
	}
}

// TestL1ZeroPattern requires the conditions of the optimum: the absolute gradient is at most L1
// where a coefficient is 0, and equal to L1 where it is not.
func TestL1ZeroPattern(t *testing.T) {
	table := higgs(t)
	const l1 = 0.02
	m := train(t, table, logistic.Params{L1: l1, Tol: 1e-9, MaxIter: 1000})
	require.Equal(t, "OWLQN", m.Summary.Method)
	r := newReference(table, 1, 0)
	d := table.D
	v, g := make([]float64, d+1), make([]float64, d+1)
	for j, b := range m.Coefficients[0] {
		v[j] = b * r.std[j]
		v[d] += b * r.mean[j]
	}
	v[d] += m.Intercepts[0]
	r.evaluate(v, g)
	zeros := 0
	for j := range d {
		if v[j] == 0 {
			zeros++
			require.LessOrEqual(t, math.Abs(g[j]), l1+1e-8)
			continue
		}
		require.InDelta(t, -math.Copysign(l1, v[j]), g[j], 1e-7)
	}
	require.InDelta(t, 0, g[d], 1e-7)
	require.Greater(t, zeros, 10)
	require.Less(t, zeros, d)
}
