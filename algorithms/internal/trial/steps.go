package trial

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// StepAllocations returns how many allocations a superstep of training makes: by how many
// more a training of many takes than one of few, of three runs each the least, since chance
// in the Go runtime adds to them. What lists of reported values take as they grow is among
// them. train adds a training of a number of supersteps; apart looks at its result, where
// it is collected as "model", and returns the allocations that are not the supersteps', as
// Encoding does.
func StepAllocations(t testing.TB, few, many int, train func(b *engine.Builder, steps int) *engine.Dataset, apart func(r *engine.Result, steps int) float64) float64 {
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
	least := func(steps int) float64 { return min(mallocs(steps), mallocs(steps), mallocs(steps)) }
	return (least(many) - least(few)) / float64(many-few)
}

// Encoding returns the allocations of writing a model's file, which grow with the record of
// its training.
func Encoding(m model.Model) float64 {
	return testing.AllocsPerRun(3, func() {
		if _, err := m.Encode(); err != nil {
			panic(err)
		}
	})
}
