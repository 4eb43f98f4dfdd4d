package optim_test

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// methods has settings of every method, with and without optional features.
var methods = []optim.Settings{
	{Method: optim.LBFGS, L2: 0.01, MaxIter: 12},
	{Method: optim.LBFGS, L2: 0.01, Trials: 4, History: 2, Information: true},
	{Method: optim.OWLQN, L1: 0.01, L2: 0.001},
	{Method: optim.Newton, L2: 0.01, Information: true},
	{Method: optim.GD, L2: 0.01, MaxIter: 8},
	{Method: optim.SGD, L1: 0.001, MaxIter: 2, StepTol: 1e-3, Stochastic: optim.Stochastic{Momentum: 0.9, Nesterov: true, Average: true}},
	{Method: optim.SGD, L2: 0.01, MaxIter: 2, Stochastic: optim.Stochastic{Update: optim.Adam, Batch: 30, Schedule: optim.Exponential}},
	{Method: optim.SGD, L2: 0.01, MaxIter: 2, Stochastic: optim.Stochastic{Update: optim.AdaGrad, Batch: 3, Schedule: optim.Optimal}},
}

func TestSameBits(t *testing.T) {
	o := objective{table: weighted(noisy(1, 150, 5)), loss: logistic}
	for _, s := range methods {
		t.Run(fmt.Sprintf("%v %+v", s.Method, s.Stochastic), func(t *testing.T) {
			trial.SameBits(t, build(o.table, o, s), "minimize")
		})
	}
	for _, s := range []optim.Settings{{Method: optim.LBFGS}, {Method: optim.Newton, MaxIter: 8}, {Method: optim.OWLQN, MaxIter: 30}} {
		trial.SameBits(t, build(o.table, o, s), "minimize")
	}
	o.can = nothing
	trial.SameBits(t, build(o.table, o, optim.Settings{L2: 0.01}), "minimize")
	trial.SameBits(t, build(o.table, o, optim.Settings{L1: 0.01}), "minimize")
}

// TestSameBitsOfWildRows requires the same bits at any parallelism for data whose magnitudes
// differ so much that another order of summation would change bits.
func TestSameBitsOfWildRows(t *testing.T) {
	o := objective{table: trial.Wild(100, 3), loss: squared}
	for _, m := range []optim.Method{optim.LBFGS, optim.Newton, optim.GD} {
		trial.SameBits(t, build(o.table, o, optim.Settings{Method: m, MaxIter: 6, Tol: -1}), "minimize")
	}
}

// atShards runs a minimisation over the given number of shards at parallelism 1, 2, 3 and 8. It
// requires that all runs have the same result, and returns this result as text. In every second
// run, subtasks drop the state that is not kept between supersteps.
func atShards(t *testing.T, shards int, build func(b *engine.Builder)) string {
	var first string
	forget := false
	for _, p := range []int{1, 2, 3, 8} {
		if p > shards || !testsize.Soak && (p == 2 || p == 3 && shards > 8 || p == 8 && shards == 8) {
			continue
		}
		text := trial.Print(t, trial.Run(t, build, engine.Shards(shards), engine.Parallelism(p), engine.CheckState(forget)), "minimize")
		forget = !forget
		if first == "" {
			first = text
		}
		require.Equal(t, first, text, "parallelism %d of %d shards", p, shards)
	}
	return first
}

// TestSameBitsOverShards requires the same result at parallelism 1, 2, 3 and 8. It tries few
// shards, many shards, and more subtasks than rows.
func TestSameBitsOverShards(t *testing.T) {
	for _, rows := range []int{1, 40} {
		o := objective{table: noisy(1, rows, 4), loss: logistic}
		for _, shards := range []int{1, 8, 128} {
			for _, s := range methods {
				if !testsize.Soak && (s.Information || s.Method == optim.GD || s.Stochastic.Batch > 0 || shards == 8 && rows > 1) {
					continue
				}
				atShards(t, shards, build(o.table, o, s))
			}
		}
	}
}

// TestReadsAreCounted requires that Result.Reads equals the number of reads that the evaluator
// counts, and that an iteration takes less than 1.4 reads on average.
func TestReadsAreCounted(t *testing.T) {
	var worst float64
	for _, s := range methods {
		for _, can := range []ability{everything, nothing} {
			if can == nothing && (s.Method == optim.Newton || s.Method == optim.SGD || s.Information) {
				continue
			}
			var reads atomic.Int64
			o := objective{table: noisy(1, 150, 5), loss: logistic, can: can, reads: &reads}
			r := solve(t, o, s, engine.Parallelism(3))
			require.InDelta(t, float64(reads.Load())/150, r.Reads, 1e-12, "%+v", s)
			var sum float64
			for _, it := range r.Record {
				sum += it.Reads
			}
			if s.Information {
				sum++
			}
			require.InDelta(t, r.Reads, sum, 1e-12)
			require.Len(t, r.Record, r.Iterations+1)
			if s.Method != optim.SGD && s.Method != optim.GD {
				worst = max(worst, r.Reads/float64(r.Iterations))
			}
		}
	}
	require.Less(t, worst, 1.4)
}

// TestShardsWithoutRows requires that the evaluator is called only for shards that have rows.
// Here some subtasks have no rows at all.
func TestShardsWithoutRows(t *testing.T) {
	o := objective{table: noisy(1, 2, 3), loss: squared}
	for _, s := range methods {
		r := solve(t, o, s, engine.Shards(128), engine.Parallelism(8))
		require.False(t, math.IsNaN(r.Loss))
	}
}
