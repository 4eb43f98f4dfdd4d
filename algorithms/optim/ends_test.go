package optim_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// smooth is an objective that every method can minimise.
func smooth() objective { return objective{table: noisy(1, 150, 5), loss: logistic} }

func TestReasons(t *testing.T) {
	o := smooth()
	best, _ := o.independent(t, optim.Settings{L2: 0.01})
	for _, m := range []optim.Method{optim.LBFGS, optim.OWLQN, optim.Newton} {
		for _, c := range []struct {
			s      optim.Settings
			reason optim.Reason
			within float64
		}{
			{optim.Settings{}, optim.GradientSmall, 1e-8},
			{optim.Settings{Tol: -1, LossTol: 1e-6}, optim.LossSettled, 1e-4},
			{optim.Settings{Tol: -1, StepTol: 1e-4}, optim.StepSmall, 1e-6},
			{optim.Settings{Tol: -1, MaxIter: 500}, optim.Exhausted, 1e-14},
			{optim.Settings{MaxIter: 2}, optim.MaxIterations, 10},
		} {
			c.s.Method, c.s.L2 = m, 0.01
			r := ended(t, o, c.s)
			require.Equal(t, c.reason, r.Reason, "%v after %d iterations", m, r.Iterations)
			require.Equal(t, c.reason != optim.MaxIterations, r.Converged)
			require.InDelta(t, best, r.Loss, best*c.within, "%v %v", m, c.reason)
			require.Equal(t, r.Record[r.Iterations].Loss, r.Loss)
			require.Equal(t, r.Record[r.Iterations].GradientNorm, r.GradientNorm)
			if c.reason == optim.Exhausted {
				require.Less(t, r.Iterations, 80)
				require.Less(t, r.GradientNorm, 1e-12)
			}
			if c.s.MaxIter == 2 {
				require.Equal(t, 2, r.Iterations)
			}
			for i := 1; i < len(r.Record); i++ {
				require.LessOrEqual(t, r.Record[i].Loss, r.Record[i-1].Loss*(1+1e-12), "the loss must never rise")
			}
		}
	}
}

func TestWarmStart(t *testing.T) {
	o := smooth()
	for _, s := range []optim.Settings{{Method: optim.LBFGS, L2: 0.01}, {Method: optim.OWLQN, L1: 0.01}, {Method: optim.Newton, L2: 0.01}} {
		s.Tol = 1e-8
		cold := ended(t, o, s)
		s.Start, s.Tol = cold.Parameters, 0
		warm := ended(t, o, s)
		require.Zero(t, warm.Iterations)
		require.Equal(t, 1.0, warm.Reads)
		require.Equal(t, cold.Parameters, warm.Parameters)
		require.InDelta(t, cold.Loss, warm.Loss, 1e-15)
		s.Start = append([]float64(nil), cold.Parameters...)
		s.Start[0] += 1e-3
		near := ended(t, o, s)
		require.Less(t, near.Iterations, cold.Iterations)
		require.InDelta(t, cold.Loss, near.Loss, 1e-8)
	}
}

// TestSeparableRowsDiverge requires that training reports Diverging if a plane separates the
// classes and there is no penalty.
func TestSeparableRowsDiverge(t *testing.T) {
	table := trial.Gaussian(4, 60, 2)
	for i := range table.N {
		y := 0.0
		if table.X[2*i] > 0 {
			y = 1
		}
		table.X[2*i] += 2*y - 1
		table.Label = append(table.Label, y)
	}
	o := objective{table: table, loss: logistic}
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton, optim.OWLQN} {
		for _, tol := range []float64{0, 1e-3, -1} {
			r := ended(t, o, optim.Settings{Method: m, Tol: tol})
			if tol > 0 { // with a tolerance, training ends before divergence can be detected
				continue
			}
			require.Equal(t, optim.Diverging, r.Reason, "%v with Tol %v: loss %v", m, tol, r.Loss)
			require.False(t, r.Converged)
		}
		r := ended(t, o, optim.Settings{Method: m, L2: 1e-3})
		require.Equal(t, optim.GradientSmall, r.Reason)
	}
	// A loss near 0 alone must not be reported as divergence. Here a plane fits all rows
	// exactly.
	exact := trial.Gaussian(4, 30, 6)
	for i := range exact.N {
		exact.Label = append(exact.Label, 3*exact.Row(i)[0]-40*exact.Row(i)[5]+7)
	}
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton, optim.OWLQN, optim.GD} {
		for _, tol := range []float64{0, -1} {
			r := ended(t, objective{table: exact, loss: squared}, optim.Settings{Method: m, Tol: tol, MaxIter: 2000})
			require.True(t, r.Converged, "%v: %v", m, r.Reason)
			require.InDelta(t, -40, r.Parameters[5], 1e-3)
		}
	}
}

// TestQuasiSeparableRowsDiverge requires that training reports Diverging if the classes are
// separable except for rows in the plane. The loss then falls towards the loss of these rows
// alone, which is log 2 per row if they are balanced.
func TestQuasiSeparableRowsDiverge(t *testing.T) {
	table := trial.Gaussian(5, 80, 3)
	for i := range table.N {
		y := float64(i % 2)
		switch x := table.Row(i); {
		case i < 20:
			x[0] = 0
			if i%2 == 1 { // a copy of the previous row, in the other class
				copy(x, table.Row(i-1))
			}
		default:
			x[0] = (2*y - 1) * (0.5 + math.Abs(x[0]))
		}
		table.Label = append(table.Label, y)
	}
	o := objective{table: table, loss: logistic}
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton, optim.OWLQN} {
		for _, can := range []ability{everything, curvedOnly} {
			o.can = can
			r := ended(t, o, optim.Settings{Method: m, MaxIter: 500})
			require.Equal(t, optim.Diverging, r.Reason, "%v: %+v", m, r.Record)
			require.False(t, r.Converged)
			require.InDelta(t, 20*math.Ln2/80, r.Loss, 1e-4)
			r = ended(t, o, optim.Settings{Method: m, L2: 1e-3})
			require.Equal(t, optim.GradientSmall, r.Reason)
		}
	}
	// If rows of one class lie among the rows of the other, there is an optimum.
	for i := range 20 {
		table.Row(i)[0] = float64(i) - 9.5
	}
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton, optim.OWLQN} {
		for _, tol := range []float64{1e-3, 1e-6, 1e-10, -1} {
			r := ended(t, o, optim.Settings{Method: m, MaxIter: 500, Tol: tol})
			require.True(t, r.Converged, "%v: %v %+v", m, r.Reason, r.Record)
		}
	}
}

// TestDegenerateTables requires that training ends normally with constant columns, with one
// row, and without parameters.
func TestDegenerateTables(t *testing.T) {
	constant := objective{table: trial.Table{N: 6, D: 2, X: make([]float64, 12), Label: []float64{1, 2, 3, 4, 5, 6}}, loss: squared}
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton, optim.OWLQN, optim.GD} {
		r := ended(t, constant, optim.Settings{Method: m})
		require.True(t, r.Converged)
		require.InDelta(t, 3.5, r.Parameters[2], 1e-6)
		require.Zero(t, r.Parameters[0])
		one := objective{table: trial.TableOf([]float64{4}, []float64{1, 2}), loss: squared}
		r = ended(t, one, optim.Settings{Method: m})
		require.True(t, r.Converged)
		require.InDelta(t, 0, r.Loss, 1e-11)
		none := objective{table: trial.TableOf([]float64{4, 2}, []float64{1}, []float64{1}), loss: squared, noIntercept: true}
		none.table.D = 0
		r = ended(t, none, optim.Settings{Method: m, Tol: -1})
		require.Equal(t, 5.0, r.Loss)
		require.Empty(t, r.Parameters)
	}
}

// TestStepsAreShortened requires that steps are shortened if the loss is infinite beyond some
// point.
func TestStepsAreShortened(t *testing.T) {
	barrier := sum{parameters: 1, term: func(_ int, v, g []float64) float64 {
		if v[0] >= 1e-3 {
			g[0] = math.NaN()
			return math.Inf(1)
		}
		g[0] += -1 + 1e-6/(1e-3-v[0])
		return -v[0] - 1e-6*math.Log(1e-3-v[0])
	}}
	r := minimize(t, ids(1), barrier, optim.Settings{Method: optim.LBFGS, Tol: 1e-9})
	require.True(t, r.Converged)
	require.InDelta(t, 1e-3-1e-6, r.Parameters[0], 1e-9)
	far := objective{table: trial.TableOf([]float64{0, 1, 3}, []float64{300}, []float64{310}, []float64{320}), loss: poisson}
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton, optim.OWLQN} {
		for _, can := range []ability{everything, curvedOnly} {
			far.can = can
			r = ended(t, far, optim.Settings{Method: m, L2: 1e-6, MaxIter: 1000})
			require.False(t, math.IsNaN(r.Loss) || math.IsInf(r.Loss, 0))
			require.Less(t, r.Loss, 1.5, "%v", m)
		}
	}
}

// ended minimises an objective twice. In the second run, subtasks drop the state that is not
// kept between supersteps. Both runs must return the same parameters and the same reason.
func ended(t *testing.T, o objective, s optim.Settings) *optim.Result {
	t.Helper()
	table := o.table
	table.D = max(table.D, 1)
	r := minimize(t, table, o, s)
	require.Equal(t, r, minimize(t, table, o, s, engine.CheckState(true)))
	return r
}

func TestStepCosts(t *testing.T) {
	o := smooth()
	r := trial.Run(t, build(o.table, o, optim.Settings{L2: 0.01}), engine.Parallelism(2), engine.Workers(2))
	result, times := decode(t, r), optim.StepCosts(r, "minimize")
	require.Len(t, times, result.Iterations+1)
	var elapsed time.Duration
	var bytes int64
	for _, at := range times {
		elapsed += at.Elapsed
		bytes += at.Bytes
	}
	require.Positive(t, elapsed)
	require.LessOrEqual(t, elapsed, r.Queue("minimize").Elapsed)
	require.Positive(t, bytes)
	require.Nil(t, optim.StepCosts(r, "another"))
	require.Len(t, r.Series("minimize", "loss"), result.Iterations+1)
	for i, it := range result.Record {
		require.Equal(t, it.Loss, r.Series("minimize", "loss")[i])
		require.Equal(t, it.GradientNorm, r.Series("minimize", "gradient norm")[i])
		require.Equal(t, it.Step, r.Series("minimize", "step")[i])
		require.Equal(t, it.Reads, r.Series("minimize", "reads")[i])
	}
}
