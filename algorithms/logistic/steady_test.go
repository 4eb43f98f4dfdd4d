//go:build !race

// These tests count allocations. They are not built with the race detector, whose own
// allocations would be counted too.

package logistic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// TestSuperstepsAllocateNothing requires that a training with many supersteps allocates as
// often as a training with few supersteps. Only the lists of reported values, which grow, and
// allocations of the Go runtime may differ. Encoding the model's file allocates more for a
// longer record; these allocations are measured separately and subtracted. The limit is sharp
// enough: one allocation per shard would be at least 8 allocations per superstep.
func TestSuperstepsAllocateNothing(t *testing.T) {
	const few, many = 4, 22
	for name, table := range map[string]trial.Table{"dense": twoClasses(2000, 8), "sparse": twoClasses(2000, 8), "softmax": threeClasses(2000, 4)} {
		table.Sparse = name == "sparse"
		for _, method := range []optim.Method{optim.GD, optim.OWLQN} {
			t.Log(name, method)
			trial.StepAllocations(t, 6, few, many, func(b *engine.Builder, steps int) *engine.Dataset {
				p := columns(table, logistic.Params{Method: method, MaxIter: steps, Tol: -1, L2: 1e-4})
				return logistic.Train(table.Dataset(b), p)
			}, func(r *engine.Result, steps int) float64 {
				require.Len(t, r.Series("logistic", "loss"), steps+1)
				m, err := logistic.ModelOf(r, "model")
				require.NoError(t, err)
				return trial.Encoding(m)
			})
		}
	}
}
