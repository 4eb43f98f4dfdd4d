//go:build !race

// This file is not built with the race detector, whose own allocations would be counted too.

package optim_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// TestSuperstepsAllocateNothing requires that a training with many supersteps allocates as much
// as a training with few. Exceptions are the lists of records and reports, which grow by
// doubling, and variations of the Go runtime.
func TestSuperstepsAllocateNothing(t *testing.T) {
	o := objective{table: noisy(1, 600, 30), loss: logistic}
	for _, s := range []optim.Settings{
		{Method: optim.LBFGS, L2: 1e-6}, {Method: optim.OWLQN, L1: 1e-5}, {Method: optim.GD},
		{Method: optim.SGD}, {Method: optim.SGD, L1: 0.1, Stochastic: optim.Stochastic{Update: optim.Adam, Average: true}},
	} {
		few, many := 20, 60
		if s.Method == optim.SGD {
			few, many = 2, 6
		}
		s.Tol = -1
		mallocs := func(iterations int) (float64, int) {
			s.MaxIter = iterations
			job := engine.Define("steady", func(b *engine.Builder, _ struct{}) error {
				build(o.table, o, s)(b)
				return nil
			})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(2), engine.Shards(8))
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			defer r.Release()
			require.Equal(t, iterations, decode(t, r).Iterations)
			return float64(after.Mallocs - before.Mallocs), r.Queue("minimize").Supersteps
		}
		mallocs(few)
		least := func(iterations int) (float64, int) {
			a, steps := mallocs(iterations)
			b, _ := mallocs(iterations)
			c, _ := mallocs(iterations)
			return min(a, b, c), steps
		}
		small, first := least(few)
		large, last := least(many)
		perStep := (large - small) / float64(last-first)
		t.Logf("%v: %.2f allocations per superstep", s.Method, perStep)
		require.Less(t, perStep, 1.0)
	}
}
