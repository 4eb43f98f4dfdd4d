package operators

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// The benchmark joins many left rows with fewer right rows. Each right row has about ten
// partners.
const (
	benchLeft  = 1_000_000
	benchRight = 100_000
)

// benchmarkJoin measures left rows per second of a job that consists of two sources and the
// operators that build adds.
func benchmarkJoin(b *testing.B, build func(left, right *engine.Dataset) *engine.Dataset, opts ...engine.Option) {
	job := engine.Anonymous(func(bld *engine.Builder) error {
		left := Generate(bld, benchLeft, func(draws sharding.Random, _ int64) benchRow {
			return benchRow{Key: int64(draws.IntN(benchRight)), Value: draws.Float64()}
		})
		right := Generate(bld, benchRight, func(draws sharding.Random, i int64) benchRow {
			return benchRow{Key: i, Value: draws.Float64()}
		})
		engine.Collect(Count(build(left, right)), "count")
		return nil
	})
	for b.Loop() {
		result, err := engine.Run(context.Background(), job, struct{}{}, opts...)
		require.NoError(b, err)
		result.Release()
	}
	b.ReportMetric(float64(b.N)*benchLeft/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkJoin measures left rows per second of an inner join of 1,000,000 left rows with
// 100,000 right rows: in memory, on disk, and by MapLookup. For comparison it also measures a
// GroupBy of 1,000,000 rows into 100,000 groups, and the sources and the exchange without a
// join.
func BenchmarkJoin(b *testing.B) {
	pair := func(l, r *benchRow) benchRow { return benchRow{l.Key, l.Value + r.Value} }
	inner := func(left, right *engine.Dataset) *engine.Dataset { return Join(left, right, On("key"), Inner, pair) }
	builds := []struct {
		name  string
		build func(left, right *engine.Dataset) *engine.Dataset
	}{
		{"exchange", func(left, right *engine.Dataset) *engine.Dataset {
			return Union(PartitionByHash(left, "key"), PartitionByHash(right, "key"))
		}},
		{"group by", func(left, _ *engine.Dataset) *engine.Dataset {
			return GroupBy(left, "key").Aggregate(SumOf("value"), CountRows())
		}},
		{"inner", inner},
		{"semi", func(left, right *engine.Dataset) *engine.Dataset { return SemiJoin(left, right, On("key")) }},
		{"group", func(left, right *engine.Dataset) *engine.Dataset {
			return CoGroup(left, right, On("key"), func(left, right *Group[benchRow], emit func(benchRow)) error {
				sum := benchRow{}
				for r := range left.Rows() {
					sum.Value += r.Value
				}
				emit(sum)
				return nil
			})
		}},
		{"lookup", func(left, right *engine.Dataset) *engine.Dataset {
			return MapLookup(left, right, func(r benchRow) int64 { return r.Key }, func(l benchRow, table *Lookup[int64, benchRow]) (benchRow, error) {
				r, _ := table.Get(l.Key)
				return benchRow{l.Key, l.Value + r.Value}, nil
			})
		}},
	}
	for _, c := range builds {
		for _, p := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s,p=%d", c.name, p), func(b *testing.B) { benchmarkJoin(b, c.build, engine.Parallelism(p)) })
		}
	}
	b.Run("inner on disk,p=1", func(b *testing.B) {
		benchmarkJoin(b, inner, engine.Parallelism(1), engine.Shards(8), engine.MemoryBudget(1<<20), engine.SpillDir(b.TempDir()))
	})
}
