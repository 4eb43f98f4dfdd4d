//go:build !race

// These tests count allocations. The race detector allocates too, which would distort the
// counts.

package gbdt_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
)

func TestPredictAllocatesNothing(t *testing.T) {
	m, table := softmaxModel(t)
	out, margins := make([]float64, 3), make([]float64, 3)
	leaves, why := make([]int32, len(m.Ensemble.Trees)), make([]float64, m.Contributions())
	indices, values := []int32{0, 2}, []float64{1, 3}
	step := trial.Step(t, m, table.Row(1))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		m.Predict(table.Row(3))
		m.PredictSparse(indices, values)
		m.PredictProbability(table.Row(5), out)
		m.PredictProbabilitySparse(indices, values, out)
		m.Margins(table.Row(2), margins)
		m.MarginsSparse(indices, values, margins)
		m.Leaves(table.Row(2), leaves)
		m.Contribute(table.Row(2), why)
		step()
	}))
}

// TestRoundsAllocateLittle requires that the number of allocations of a round depends on its
// trees and does not grow with the number of rows.
func TestRoundsAllocateLittle(t *testing.T) {
	mallocs := func(n, rounds int) float64 {
		table := labelled(made(81, n, 4), func(y float64) float64 { return kernelBool(y > 3) })
		job := engine.Define("steady", func(b *engine.Builder, _ struct{}) error {
			rows := table.Dataset(b)
			p := gbdt.Params{LabelCol: "label", Objective: gbdt.Logistic, NumTrees: rounds, MaxDepth: 3, Subsample: 0.8}
			engine.Collect(gbdt.Train(rows, p, gbdt.Set{Name: "test", Rows: rows}), "model")
			return nil
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(1), engine.Shards(8))
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		r.Release()
		return float64(after.Mallocs - before.Mallocs)
	}
	few := mallocs(500, 12) - mallocs(500, 2)
	many := mallocs(8000, 12) - mallocs(8000, 2)
	t.Logf("allocations of ten rounds: %v of 500 rows, %v of 8000", few, many)
	require.Less(t, many, 1.5*few+500)
}
