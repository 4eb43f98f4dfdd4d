package optim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// noisy returns rows with columns of different scales, and labels 0 and 1 drawn around a plane.
func noisy(seed uint64, n, d int) trial.Table {
	t := trial.Gaussian(seed, n, d)
	noise := trial.Gaussian(seed+1, n, 1)
	for i := range n {
		row, m := t.Row(i), 0.3
		for j := range row {
			row[j] *= math.Pow(3, float64(j%5)-2)
			m += row[j] * math.Sin(float64(j+1))
		}
		y := 0.0
		if m+2*noise.X[i] > 0 {
			y = 1
		}
		t.Label = append(t.Label, y)
	}
	return t
}

// weighted returns the table with weights between 0.2 and 2.2.
func weighted(t trial.Table) trial.Table {
	t.Weight = nil
	for i := range t.N {
		t.Weight = append(t.Weight, 1.2+math.Sin(float64(i)))
	}
	return t
}

// value returns F and stores the gradient in g. It is a simple loop without shards.
func (o objective) value(v, g []float64, s optim.Settings) float64 {
	e := &evaluator{objective: o}
	out := make([]float64, 1+len(v))
	for i := range o.table.N {
		r := row{x: o.table.Row(i), y: o.table.Label[i], w: 1}
		if o.table.Weight != nil {
			r.w = o.table.Weight[i]
		}
		e.add(&r, e.margin(&r, v), out)
	}
	f := out[0] / o.totalWeight()
	for i := range v {
		penalised := 1.0
		if i == o.table.D {
			penalised = 0
		}
		f += penalised * (s.L1*math.Abs(v[i]) + s.L2*v[i]*v[i]/2)
		if g != nil {
			g[i] = out[1+i]/o.totalWeight() + penalised*s.L2*v[i]
		}
	}
	return f
}

// independent returns the optimum that gonum's BFGS finds with its tightest tolerance.
func (o objective) independent(t testing.TB, s optim.Settings) (float64, []float64) {
	problem := optimize.Problem{
		Func: func(v []float64) float64 { return o.value(v, nil, s) },
		Grad: func(g, v []float64) { o.value(v, g, s) },
	}
	r, err := optimize.Minimize(problem, make([]float64, o.parameters()), &optimize.Settings{
		GradientThreshold: 1e-13, Converger: &optimize.FunctionConverge{Absolute: 0, Relative: 0, Iterations: 100},
	}, &optimize.BFGS{})
	if r == nil {
		require.NoError(t, err)
	}
	return r.F, r.X
}

// requireClose asserts that two values agree to a relative 1e-9.
func requireClose(t testing.TB, want, got float64, what ...any) {
	t.Helper()
	require.InDelta(t, want, got, 1e-9*max(math.Abs(want), 1e-3), what...)
}

func TestOptimaEqualIndependentOnes(t *testing.T) {
	counts := noisy(3, 60, 3)
	for i := range counts.N {
		counts.X[i*3+2] /= 3
		counts.Label[i] = math.Floor(3 + 3*math.Sin(float64(i)*1.7))
	}
	for name, o := range map[string]objective{
		"squared":               {table: noisy(1, 60, 5), loss: squared},
		"logistic":              {table: noisy(2, 80, 4), loss: logistic},
		"logistic of weights":   {table: weighted(noisy(2, 80, 4)), loss: logistic},
		"logistic, no constant": {table: noisy(4, 80, 3), loss: logistic, noIntercept: true},
		"poisson":               {table: counts, loss: poisson},
	} {
		for _, s := range []optim.Settings{
			{Method: optim.LBFGS}, {Method: optim.LBFGS, History: 3}, {Method: optim.LBFGS, Trials: 5},
			{Method: optim.Newton}, {Method: optim.OWLQN}, {Method: optim.GD, MaxIter: 8000},
		} {
			s.L2, s.Tol = 0.05, 1e-9
			s.MaxIter = max(s.MaxIter, 300)
			want, _ := o.independent(t, s)
			for _, can := range []ability{everything, linearOnly, curvedOnly} {
				if s.Method == optim.Newton && can == linearOnly || s.Method == optim.GD && (can != linearOnly || name != "logistic" || !testsize.Soak) || can == curvedOnly && s.Trials > 0 {
					continue
				}
				o.can = can
				r := solve(t, o, s)
				require.True(t, r.Converged, "%s by %+v: %v", name, s, r.Reason)
				requireClose(t, want, r.Loss, "%s by %+v", name, s)
				requireClose(t, o.value(r.Parameters, nil, s), r.Loss)
				require.Equal(t, s.Method, r.Method)
			}
		}
	}
}

// TestClosedForm compares ridge regression with its closed form.
func TestClosedForm(t *testing.T) {
	o := objective{table: weighted(noisy(9, 60, 4)), loss: squared, noIntercept: true}
	const l2 = 0.3
	normal, right := mat.NewSymDense(4, nil), mat.NewVecDense(4, nil)
	for i := range 60 {
		w := o.table.Weight[i] / o.totalWeight()
		for j, x := range o.table.Row(i) {
			right.SetVec(j, right.AtVec(j)+w*x*o.table.Label[i])
			for k := range j + 1 {
				normal.SetSym(j, k, normal.At(j, k)+w*x*o.table.Row(i)[k])
			}
		}
	}
	information := mat.NewSymDense(4, nil)
	information.CopySym(normal)
	for j := range 4 {
		normal.SetSym(j, j, normal.At(j, j)+l2)
	}
	var want mat.VecDense
	require.NoError(t, want.SolveVec(normal, right))
	for _, m := range []optim.Method{optim.Auto, optim.LBFGS, optim.Newton, optim.OWLQN, optim.GD} {
		r := solve(t, o, optim.Settings{Method: m, L2: l2, Tol: 1e-12, MaxIter: 3000, Information: true})
		within := 1e-10
		if m == optim.GD {
			within = 1e-8 // GD ends when no step lowers the loss, at about the square root of the loss's precision
		}
		for j, v := range r.Parameters {
			require.InDelta(t, want.AtVec(j), v, within, "%v", m)
		}
		for j := range 4 {
			for k := range j + 1 {
				require.InDelta(t, information.At(j, k), r.Information[j*(j+1)/2+k], 1e-11)
			}
		}
	}
	r := solve(t, o, optim.Settings{L2: l2})
	require.Equal(t, optim.Newton, r.Method)
	require.Equal(t, 1, r.Iterations)
}

// rosenbrock is the extended function of Moré, Garbow and Hillstrom (problem 21) as a
// sum over rows: f = Σ 100·(v₂ᵢ - v₂ᵢ₋₁²)² + (1 - v₂ᵢ₋₁)², with the minimum 0 at ones.
func rosenbrock(n int) sum {
	return sum{
		parameters: n,
		term: func(i int, v, g []float64) float64 {
			k := i / 2 * 2
			if i%2 == 0 {
				r := v[k+1] - v[k]*v[k]
				g[k+1] += 200 * r
				g[k] -= 400 * r * v[k]
				return 100 * r * r
			}
			g[k] -= 2 * (1 - v[k])
			return (1 - v[k]) * (1 - v[k])
		},
		curve: func(i int, v, h []float64) {
			k := i / 2 * 2
			at := func(r, c int) int { return r*(r+1)/2 + c }
			if i%2 == 0 {
				h[at(k+1, k+1)] += 200
				h[at(k+1, k)] -= 400 * v[k]
				h[at(k, k)] += 1200*v[k]*v[k] - 400*v[k+1]
				return
			}
			h[at(k, k)] += 2
		},
	}
}

// ids returns n rows without values. Objectives use only their row numbers.
func ids(n int) trial.Table {
	return trial.Table{N: n, D: 1, X: make([]float64, n)}
}

func TestRosenbrock(t *testing.T) {
	start := make([]float64, 10)
	for i := range start {
		start[i] = 1
		if i%2 == 0 {
			start[i] = -1.2
		}
	}
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton} {
		r := minimize(t, ids(10), rosenbrock(10), optim.Settings{Method: m, Start: start, Tol: 1e-13})
		require.True(t, r.Converged, "%v", r.Reason)
		require.Less(t, r.Loss, 1e-22, "%v", m)
		for _, v := range r.Parameters {
			require.InDelta(t, 1, v, 1e-9)
		}
		require.Less(t, r.Iterations, 60)
	}
}

// TestNewtonLeavesASaddle requires that Newton's method leaves a point where the matrix is
// indefinite. The function (v₀²-1)² + v₀·v₁ + v₁² has a saddle at the origin and two minima.
func TestNewtonLeavesASaddle(t *testing.T) {
	saddle := sum{
		parameters: 2,
		term: func(_ int, v, g []float64) float64 {
			a := v[0]*v[0] - 1
			g[0] += 4*a*v[0] + v[1]
			g[1] += v[0] + 2*v[1]
			return a*a + v[0]*v[1] + v[1]*v[1]
		},
		curve: func(_ int, v, h []float64) {
			h[0] += 12*v[0]*v[0] - 4
			h[1]++
			h[2] += 2
		},
	}
	for _, start := range [][]float64{{0.1, 0.1}, {-0.01, 0}, {0.3, -1}, {0, 1e-3}} {
		r := minimize(t, ids(1), saddle, optim.Settings{Method: optim.Newton, Start: start, Tol: 1e-12})
		require.True(t, r.Converged)
		x := math.Sqrt(1.125) // 4(x²-1)x - x/2 = 0 with v₁ = -x/2
		require.InDelta(t, x, math.Abs(r.Parameters[0]), 1e-9, "from %v: %v", start, r.Parameters)
		require.InDelta(t, -r.Parameters[0]/2, r.Parameters[1], 1e-9)
	}
}

// TestCollinearColumns requires that Newton's method works with a singular matrix. Here the
// matrix is singular because columns are collinear and there is no penalty.
func TestCollinearColumns(t *testing.T) {
	table := noisy(6, 90, 4)
	for i := range table.N {
		row := table.Row(i)
		row[3] = 2*row[0] - row[1]
		row[2] = 0
	}
	o := objective{table: table, loss: logistic}
	want, _ := o.independent(t, optim.Settings{})
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton} {
		r := solve(t, o, optim.Settings{Method: m, Tol: 1e-9})
		require.True(t, r.Converged)
		require.Less(t, r.Iterations, 60)
		requireClose(t, want, r.Loss, "%v", m)
	}
}

// TestFewerRowsThanParameters requires that training with more parameters than rows and with a
// penalty finds the unique optimum.
func TestFewerRowsThanParameters(t *testing.T) {
	table := trial.Gaussian(8, 12, 100)
	for i := range table.N {
		table.Label = append(table.Label, float64(i%2))
	}
	o := objective{table: table, loss: logistic}
	s := optim.Settings{L2: 0.1, Tol: 1e-10}
	want, _ := o.independent(t, s)
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton, optim.OWLQN} {
		s.Method = m
		requireClose(t, want, solve(t, o, s).Loss, "%v", m)
	}
}
