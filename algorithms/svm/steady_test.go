//go:build !race

// This file is not built with the race detector, whose own allocations would be counted too.

package svm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
)

// TestSuperstepsAllocateNothing requires that a training with many supersteps allocates as much
// as a training with few. Exceptions are the lists of reported values, which grow, and
// variations of the Go runtime. Writing the model's file allocates more for a longer record;
// that is measured separately and subtracted. One allocation per shard would be at least 8 per
// superstep.
func TestSuperstepsAllocateNothing(t *testing.T) {
	const few, many = 4, 22
	for name, table := range map[string]trial.Table{"two": several(1000, 8, 2), "sparse": several(1000, 8, 3), "three": several(1000, 4, 3)} {
		table.Sparse = name == "sparse"
		for _, p := range []svm.LinearSVC{{Method: optim.GD}, {Squared: true, Method: optim.OWLQN}} {
			t.Log(name, p.Method)
			trial.StepAllocations(t, 6, few, many, func(b *engine.Builder, steps int) *engine.Dataset {
				p := svcColumns(table, p)
				p.MaxIter, p.Tol = steps, -1
				return svm.TrainSVC(table.Dataset(b), p)
			}, func(r *engine.Result, steps int) float64 {
				require.Len(t, r.Series("linear-svc", "loss"), steps+1)
				m, err := svm.SVCModelOf(r, "model")
				require.NoError(t, err)
				return trial.Encoding(m)
			})
		}
	}
}
