package operators

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// benchRow is the row that the benchmarks group and sort.
type benchRow struct {
	Key   int64
	Value float64
}

// benchRows is the number of rows of one iteration.
const benchRows = 1 << 19

// benchmarkRows measures rows per second of a job that consists of a source of rows and the
// operators that build adds. The keys of the rows are less than keys.
func benchmarkRows(b *testing.B, keys int, build func(d *engine.Dataset) *engine.Dataset, opts ...engine.Option) {
	job := engine.Anonymous(func(bld *engine.Builder) error {
		rows := Generate(bld, benchRows, func(draws sharding.Random, i int64) benchRow {
			return benchRow{Key: int64(draws.IntN(keys)), Value: draws.Float64()}
		})
		if build != nil {
			rows = build(rows)
		}
		engine.Collect(Count(rows), "count")
		return nil
	})
	for b.Loop() {
		result, err := engine.Run(context.Background(), job, struct{}{}, opts...)
		require.NoError(b, err)
		result.Release()
	}
	b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkGroupBy measures rows per second for several numbers of groups. The sub-benchmark
// "source" has only the source.
func BenchmarkGroupBy(b *testing.B) {
	b.Run("source", func(b *testing.B) { benchmarkRows(b, 10, nil, engine.Parallelism(1)) })
	for _, keys := range []int{10, 10_000, 1 << 30} {
		for _, p := range []int{1, 2} {
			b.Run(fmt.Sprintf("keys=%d,p=%d", keys, p), func(b *testing.B) {
				benchmarkRows(b, keys, func(d *engine.Dataset) *engine.Dataset {
					return GroupBy(d, "key").Aggregate(SumOf("value"), CountRows())
				}, engine.Parallelism(p))
			})
		}
	}
}

// BenchmarkSort measures rows per second in memory and on disk.
func BenchmarkSort(b *testing.B) {
	for _, p := range []int{1, 2} {
		b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
			benchmarkRows(b, 1<<30, func(d *engine.Dataset) *engine.Dataset { return Sort(d, Asc("key")) }, engine.Parallelism(p))
		})
	}
	b.Run("on disk,p=1", func(b *testing.B) {
		benchmarkRows(b, 1<<30, func(d *engine.Dataset) *engine.Dataset { return Sort(d, Asc("key")) },
			engine.Parallelism(1), engine.Shards(8), engine.MemoryBudget(1<<20), engine.SpillDir(b.TempDir()))
	})
}
