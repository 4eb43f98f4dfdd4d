package parquet

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// twenty is a row of 20 columns.
type twenty struct {
	A, B, C, D, E, F, G, H, I, J float64
	K, L, M, N, O                int64
	P, Q, R, S, T                string
}

// BenchmarkSumOfOne sums one column of a file of 20 columns. It has three cases: the plan shows
// that the other columns are unused, Columns names the column, or an operator between the
// source and the sum may read all columns.
func BenchmarkSumOfOne(b *testing.B) {
	const rows = 400_000
	path := filepath.Join(b.TempDir(), "twenty.parquet")
	run := func(build func(bld *engine.Builder)) {
		result, err := engine.Run(b.Context(), engine.Anonymous(func(bld *engine.Builder) error {
			build(bld)
			return nil
		}), struct{}{}, engine.Parallelism(1))
		require.NoError(b, err)
		result.Release()
	}
	run(func(bld *engine.Builder) {
		Write(operators.Generate(bld, rows, func(d sharding.Random, i int64) twenty {
			x, n, s := d.Float64(), int64(d.IntN(1000)), fmt.Sprint("text ", d.IntN(10_000))
			return twenty{x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7, x + 8, x + 9, n, n + 1, n + 2, i, i + 1, s, s, s, s, s}
		}), path, WriteOptions{})
	})
	all := func(d *engine.Dataset) *engine.Dataset {
		return operators.MapBatch(d, engine.Schema{}, func(_ *engine.Context, in engine.Batch) (engine.Batch, error) {
			rows := arrowrows.Record(in)
			rows.Retain()
			return arrowrows.Batch(rows), nil
		})
	}
	for name, read := range map[string]func(bld *engine.Builder) *engine.Dataset{
		"by the plan": func(bld *engine.Builder) *engine.Dataset { return Read(bld, path, ReadOptions{}) },
		"named":       func(bld *engine.Builder) *engine.Dataset { return Read(bld, path, ReadOptions{Columns: []string{"c"}}) },
		"all":         func(bld *engine.Builder) *engine.Dataset { return all(Read(bld, path, ReadOptions{})) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run(func(bld *engine.Builder) {
					engine.Collect(operators.Aggregate(read(bld), operators.SumOf("c")), "sum")
				})
			}
			b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
