package gbdt_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// BenchmarkTrain measures whole trainings on 28 dense features, with trees of depth 6, at
// parallelism 2.
func BenchmarkTrain(b *testing.B) {
	for _, n := range []int{10_000, 200_000} {
		table := labelled(made(71, n, 28), func(y float64) float64 { return kernelBool(y > 3) })
		record := table.Record()
		for _, rounds := range []int{1, 21} {
			b.Run(fmt.Sprintf("%d rows/%d rounds", n, rounds), func(b *testing.B) {
				job := engine.Define("bench", func(j *engine.Builder, _ struct{}) error {
					p := gbdt.Params{VectorCol: "features", LabelCol: "label", Objective: gbdt.Logistic, NumTrees: rounds}
					engine.Collect(gbdt.Train(arrowbridge.FromRecords(j, []arrow.Record{record}), p), "model")
					return nil
				})
				for b.Loop() {
					r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(2))
					require.NoError(b, err)
					r.Release()
				}
			})
		}
	}
}

// BenchmarkPredict measures predictions for single rows by 100 trees.
func BenchmarkPredict(b *testing.B) {
	table := made(72, 4000, 28)
	m := train(b, table, gbdt.Params{LabelCol: "label", NumTrees: 100})
	i := 0
	for b.Loop() {
		m.Predict(table.Row(i))
		i = (i + 1) % table.N
	}
}
