//go:build !race

// The race detector allocates for itself, which is not what is counted here.

package glm_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// Supersteps allocate nothing: a training of many allocates what one of few does, but for
// the lists of what was reported, which grow, and chance in the Go runtime. What writing the
// model's file takes, which grows with the record, is measured apart and left out. An
// allocation for each shard would be 8 or more.
func TestSuperstepsAllocateNothing(t *testing.T) {
	const few = 3
	for name, table := range map[string]trial.Table{"dense": counts(1000, 8), "sparse": counts(1000, 8)} {
		table.Sparse = name == "sparse"
		for _, p := range []glm.Params{{Family: glm.Poisson, Method: optim.GD, L2: 1e-4}, {Family: glm.Gamma, Method: optim.OWLQN, L2: 1e-4}} {
			many := 22
			if p.Method == optim.OWLQN {
				many = 13 // it is at the optimum soon after
			}
			mallocs := func(iterations int) float64 {
				p := columns(table, p)
				p.MaxIter, p.Tol = iterations, -1
				job := engine.Define("steady", func(b *engine.Builder, _ struct{}) error {
					engine.Collect(glm.Train(table.Dataset(b), p), "model")
					return nil
				})
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(2), engine.Shards(8))
				runtime.ReadMemStats(&after)
				require.NoError(t, err)
				defer r.Release()
				require.Len(t, r.Series("glm", "loss"), iterations+1)
				m, err := glm.ModelOf(r, "model")
				require.NoError(t, err)
				return float64(after.Mallocs-before.Mallocs) - testing.AllocsPerRun(3, func() {
					if _, err := m.Encode(); err != nil {
						panic(err)
					}
				})
			}
			mallocs(few)
			least := func(n int) float64 { return min(mallocs(n), mallocs(n), mallocs(n)) }
			perStep := (least(many) - least(few)) / float64(many-few)
			t.Logf("%s, %v: %.2f allocations per superstep", name, p.Method, perStep)
			require.Less(t, perStep, 6.0)
		}
	}
}
