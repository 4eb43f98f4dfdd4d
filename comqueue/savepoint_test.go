package comqueue_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// TestSavepointBeyondTheMaximum requires that a queue does no superstep, and ends with the rows and series
// of an undisturbed run of as many supersteps as its savepoint has, if the maximum allows no more.
func TestSavepointBeyondTheMaximum(t *testing.T) {
	const saved = 4
	build := func(most, lost int) func(b *engine.Builder) *engine.Dataset {
		return func(b *engine.Builder) *engine.Dataset {
			return walking("q", dataset(b, 200, spread), 0).Do(func(ctx *comqueue.ComContext) error {
				switch {
				case ctx.StepNo() > most:
					return fmt.Errorf("superstep %d, of at most %d", ctx.StepNo(), most)
				case ctx.StepNo() == lost && ctx.TaskID() == 0:
					return errLost
				}
				return nil
			}).SetMaxIter(most).Exec()
		}
	}
	shards := engine.Shards(16)
	savepoint := filepath.Join(t.TempDir(), "savepoint")
	_, _, err := runOnce(t, build(6, saved+1), shards, engine.Parallelism(2), engine.CheckpointDir(savepoint), engine.CheckpointSupersteps(1))
	require.ErrorIs(t, err, errLost)
	require.Equal(t, saved, savedStep(t, savepoint, "q"))
	want, whole, err := runOnce(t, build(saved, 0), shards)
	require.NoError(t, err)
	for _, most := range []int{saved, 1} {
		for _, parallel := range []struct{ subtasks, workers int }{{1, 0}, {3, 0}, {4, 2}} {
			name := fmt.Sprint("at most ", most, ", ", parallel)
			got, result, err := runOnce(t, build(most, 0), shards, engine.Parallelism(parallel.subtasks), engine.Workers(parallel.workers), engine.FromSavepoint(savepoint))
			require.NoError(t, err, name)
			require.Equal(t, bitsOf(want), bitsOf(got), name)
			requireSameSeries(t, whole.Report.Queues, result.Report.Queues, name)
		}
	}
}
