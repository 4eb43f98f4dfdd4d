package objective_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/engine"
)

// TestNarrowShardsBeyondTheBudget requires that narrow shards that do not fit in memory are
// stored in files, together with the numbers of their columns, and give the same bits.
func TestNarrowShardsBeyondTheBudget(t *testing.T) {
	record := wideRecord(8000, 6000, 20, 12)
	l := objective.Linear{Loss: objective.Logistic{}}
	want := bitsOf(narrowSums(t, record, l, true, false, 1))
	for _, parallelism := range []int{1, 2} {
		got := narrowSums(t, record, l, false, true, parallelism, engine.MemoryBudget(800<<10))
		require.Equal(t, want, bitsOf(got), "parallelism %d: rows on disk must give the bits of rows in memory", parallelism)
	}
}
