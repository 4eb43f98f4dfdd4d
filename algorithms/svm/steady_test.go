//go:build !race

// The race detector allocates for itself, which is not what is counted here.

package svm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
)

// Supersteps allocate nothing: a training of many allocates what one of few does, but for
// the lists of what was reported, which grow, and chance in the Go runtime. What writing the
// model's file takes, which grows with the record, is measured apart and left out. An
// allocation for each shard would be 8 or more.
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
