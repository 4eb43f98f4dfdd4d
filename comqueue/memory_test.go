package comqueue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// TestJoinedBroadcastCounts requires that broadcast rows in several batches count twice in the
// budget, as the batches and as one frame. A budget that holds the rows only once must be
// refused.
func TestJoinedBroadcastCounts(t *testing.T) {
	const rows, size = 4000, 8 * 4000
	all := comqueue.BroadcastRows("all")
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "q").
			InitWithBroadcastData(all, dataset(b, rows, func(i int) float64 { return float64(i) })).
			Do(func(*comqueue.ComContext) error { return nil }).
			CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	}
	for _, p := range []int{1, 3} {
		_, _, err := runOnce(t, build, engine.Parallelism(p), engine.Shards(16), engine.MemoryBudget(size*3/2))
		require.ErrorContains(t, err, `broadcast data "all": side input 0, the rows of Numbers: out of memory: it takes `, "parallelism %d", p)
		_, _, err = runOnce(t, build, engine.Parallelism(p), engine.Shards(16), engine.MemoryBudget(size*3))
		require.NoError(t, err, "parallelism %d", p)
	}
}
