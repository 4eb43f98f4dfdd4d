package trial

import (
	"context"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// StepAllocations requires that the number of allocations of a superstep of training is less
// than the parameter below. It compares a training of many supersteps with a training of few
// supersteps. The Go runtime adds allocations at random, and more of them on a busy machine. So
// each training runs up to twelve times, and the runs with the fewest allocations are compared.
// The growth of lists of reported values is included. train adds a training of the given number
// of supersteps, which is collected as "model". The function apart returns the number of
// allocations of a run that must not be counted, such as the number that Encoding returns.
func StepAllocations(t testing.TB, below float64, few, many int, train func(b *engine.Builder, steps int) *engine.Dataset, apart func(r *engine.Result, steps int) float64) {
	t.Helper()
	mallocs := func(steps int) float64 {
		job := engine.Define("steady", func(b *engine.Builder, _ struct{}) error {
			engine.Collect(train(b, steps), "model")
			return nil
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(2), engine.Shards(8))
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		defer r.Release()
		return float64(after.Mallocs-before.Mallocs) - apart(r, steps)
	}
	mallocs(few)
	perStep, least := math.Inf(1), [2]float64{math.Inf(1), math.Inf(1)}
	for runs := 0; runs < 12 && (runs < 3 || perStep >= below); runs++ {
		least[0], least[1] = min(least[0], mallocs(few)), min(least[1], mallocs(many))
		perStep = (least[1] - least[0]) / float64(many-few)
	}
	require.Less(t, perStep, below, "the number of allocations per superstep is too large")
}

// Encoding returns the number of allocations when a model's file is encoded. This number grows
// with the length of the training record in the file.
func Encoding(m model.Model) float64 {
	return testing.AllocsPerRun(3, func() {
		if _, err := m.Encode(); err != nil {
			panic(err)
		}
	})
}
