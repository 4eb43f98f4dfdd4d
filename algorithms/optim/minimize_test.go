package optim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// noisy returns rows with columns of different scales, labels 0 and 1 drawn around a plane.
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

func TestFirst(t *testing.T) {
	o := objective{table: noisy(1, 300, 6), loss: logistic}
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton, optim.GD} {
		for _, can := range []ability{everything, nothing} {
			o.can = can
			if can == nothing && m == optim.Newton {
				continue
			}
			r := solve(t, o, optim.Settings{Method: m, L2: 0.01, Tol: 1e-10, MaxIter: 300})
			t.Logf("%v %v %v %d iterations %v reads loss %.17g norm %g", m, can, r.Reason, r.Iterations, r.Reads, r.Loss, r.GradientNorm)
			require.True(t, r.Converged || m == optim.GD)
		}
	}
	r := solve(t, o, optim.Settings{L1: 0.03, Tol: 1e-10, MaxIter: 300})
	t.Logf("%v %d iterations %v reads loss %.17g norm %g %v", r.Reason, r.Iterations, r.Reads, r.Loss, r.GradientNorm, r.Parameters)
	o.can = everything
	r = solve(t, o, optim.Settings{L1: 0.03, Tol: 1e-10, MaxIter: 300})
	t.Logf("%v %d iterations %v reads loss %.17g norm %g %v", r.Reason, r.Iterations, r.Reads, r.Loss, r.GradientNorm, r.Parameters)
}

func TestBitsFirst(t *testing.T) {
	o := objective{table: noisy(1, 300, 6), loss: logistic}
	for _, can := range []ability{everything, nothing} {
		o.can = can
		for _, s := range []optim.Settings{{Method: optim.LBFGS, L2: 0.01}, {Method: optim.OWLQN, L1: 0.01}, {Method: optim.Newton, L2: 0.01}, {Method: optim.GD, L2: 0.01, MaxIter: 20}} {
			if can == nothing && s.Method == optim.Newton {
				continue
			}
			trial.SameBits(t, build(o.table, o, s), "minimize")
		}
	}
}
