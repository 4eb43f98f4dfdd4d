package optim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// coordinates is a simple reference for L1 penalties. It minimises F along one coordinate at a
// time, by proximal steps with a bound on the second derivative, until no coordinate moves.
func coordinates(o objective, s optim.Settings, bound float64) []float64 {
	v := make([]float64, o.parameters())
	margins := make([]float64, o.table.N)
	w := o.totalWeight()
	feature := func(i, j int) float64 {
		if j == o.table.D {
			return 1
		}
		return o.table.Row(i)[j]
	}
	for range 100000 {
		var most float64
		for j := range v {
			var g, h float64
			for i, m := range margins {
				_, d, _ := o.loss(m, o.table.Label[i])
				g += d * feature(i, j) / w
				h += bound * feature(i, j) * feature(i, j) / w
			}
			l1, l2 := s.L1, s.L2
			if j == o.table.D {
				l1, l2 = 0, 0
			}
			h += l2
			z := v[j] - (g+l2*v[j])/h
			to := math.Copysign(max(math.Abs(z)-l1/h, 0), z)
			for i := range margins {
				margins[i] += (to - v[j]) * feature(i, j)
			}
			most = max(most, math.Abs(to-v[j]))
			v[j] = to
		}
		if most < 1e-13 {
			break
		}
	}
	return v
}

// sparseTruth returns rows whose labels depend on 4 of 20 columns.
func sparseTruth(seed uint64, n int) trial.Table {
	t := trial.Gaussian(seed, n, 20)
	noise := trial.Gaussian(seed+1, n, 1)
	for i := range n {
		r := t.Row(i)
		t.Label = append(t.Label, 1+2*r[3]-r[7]+0.5*r[11]+0.2*r[19]+0.3*noise.X[i])
	}
	return t
}

func TestOWLQNEqualsCoordinateDescent(t *testing.T) {
	lasso := objective{table: sparseTruth(1, 80), loss: squared}
	classes := objective{table: sparseTruth(5, 80), loss: logistic}
	for i, y := range classes.table.Label {
		classes.table.Label[i] = 0
		if y > 1 {
			classes.table.Label[i] = 1
		}
	}
	for name, at := range map[string]struct {
		o     objective
		bound float64
	}{"lasso": {lasso, 1}, "logistic": {classes, 0.25}} {
		for _, s := range []optim.Settings{{L1: 0.3}, {L1: 0.02}, {L1: 0.05, L2: 0.1}, {L1: 1e-3, L2: 1e-3}, {L1: 100}} {
			want := coordinates(at.o, s, at.bound)
			for _, can := range []ability{everything, nothing} {
				if can == nothing && s.L1 != 0.05 && !testsize.Soak {
					continue
				}
				at.o.can = can
				s.Tol, s.MaxIter = 1e-10, 400
				r := solve(t, at.o, s)
				require.Equal(t, optim.OWLQN, r.Method)
				require.True(t, r.Converged, "%s %+v: %v", name, s, r.Reason)
				requireClose(t, at.o.value(want, nil, s), r.Loss, "%s %+v", name, s)
				for j, v := range r.Parameters {
					require.Equal(t, want[j] == 0, v == 0, "%s %+v: parameter %d is %v, want %v", name, s, j, v, want[j])
					require.InDelta(t, want[j], v, 1e-6)
				}
				require.LessOrEqual(t, r.Reads/float64(r.Iterations+1), 1.3, "%s %+v", name, s)
			}
		}
	}
}

// TestOWLQNChangesSigns requires that training from a distant start, from which parameters must
// change their signs, reaches the same optimum as training from zeros. The same parameters must
// be 0.
func TestOWLQNChangesSigns(t *testing.T) {
	o := objective{table: sparseTruth(1, 80), loss: squared}
	s := optim.Settings{L1: 0.05, Tol: 1e-10, MaxIter: 400}
	want := solve(t, o, s)
	s.Start = make([]float64, 21)
	for j := range s.Start {
		s.Start[j] = 5 * math.Cos(float64(2*j))
	}
	r := solve(t, o, s)
	requireClose(t, want.Loss, r.Loss)
	for j, v := range r.Parameters {
		require.Equal(t, want.Parameters[j] == 0, v == 0)
	}
}
