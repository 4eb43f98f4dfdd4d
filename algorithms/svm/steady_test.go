//go:build !race

// The race detector allocates too, which would spoil the counts.

package svm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
)

// Supersteps allocate nothing: a training of many supersteps allocates as much as one of few.
// Exceptions are the growing lists of reported values, and chance in the Go runtime. Writing
// the model's file allocates more for a longer record; this is measured apart and subtracted.
// An allocation for each shard would be 8 or more.
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
