package rows_test

import (
	"context"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// BenchmarkCheck measures a job that checks rows and computes the facts about them.
func BenchmarkCheck(b *testing.B) {
	const n, d = 200_000, 16
	dense := trial.Gaussian(1, n, d)
	for i := range n {
		dense.Label, dense.Weight = append(dense.Label, float64(i%3)), append(dense.Weight, 1+float64(i%5))
	}
	sparse := dense
	sparse.Sparse = true
	for _, c := range []struct {
		name  string
		table trial.Table
		label rows.LabelKind
	}{{"numbers", dense, rows.NumberLabel}, {"classes", dense, rows.ClassLabel}, {"sparse", sparse, rows.NumberLabel}} {
		rec := []arrow.Record{c.table.Record()}
		job := engine.Define("bench", func(b *engine.Builder, _ struct{}) error {
			d := arrowbridge.FromRecords(b, rec)
			t, err := rows.Check("bench", d, rows.Columns{Vector: "features", Label: "label", Weight: "weight"}, c.label)
			engine.Collect(t.Facts, "facts")
			return err
		})
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := engine.Run(context.Background(), job, struct{}{}, engine.Shards(8))
				if err != nil {
					b.Fatal(err)
				}
				r.Release()
			}
		})
	}
}
