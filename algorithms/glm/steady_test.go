//go:build !race

// This test counts allocations. Under the race detector it would also count the allocations of
// the detector.

package glm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// TestSuperstepsAllocateNothing requires that a training with many supersteps allocates as much
// as a training with few supersteps. Exceptions are the lists of reported values, which grow,
// and variations of the Go runtime. Writing the model's file allocates more for a longer
// record; that is measured separately and subtracted. One allocation per shard would be at
// least 8 per superstep.
func TestSuperstepsAllocateNothing(t *testing.T) {
	const few = 3
	for name, table := range map[string]trial.Table{"dense": counts(1000, 8), "sparse": counts(1000, 8)} {
		table.Sparse = name == "sparse"
		for _, p := range []glm.Params{{Family: glm.Poisson, Method: optim.GD, L2: 1e-4}, {Family: glm.Gamma, Method: optim.OWLQN, L2: 1e-4}} {
			many := 22
			if p.Method == optim.OWLQN {
				many = 13 // with more steps it would reach the optimum
			}
			t.Log(name, p.Method)
			trial.StepAllocations(t, 6, few, many, func(b *engine.Builder, steps int) *engine.Dataset {
				p := columns(table, p)
				p.MaxIter, p.Tol = steps, -1
				return glm.Train(table.Dataset(b), p)
			}, func(r *engine.Result, steps int) float64 {
				require.Len(t, r.Series("glm", "loss"), steps+1)
				m, err := glm.ModelOf(r, "model")
				require.NoError(t, err)
				return trial.Encoding(m)
			})
		}
	}
}
