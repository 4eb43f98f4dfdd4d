package operators

import (
	"testing"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// BenchmarkRows measures the time per row of operators that follow Range. The time of Range
// alone is the baseline.
func BenchmarkRows(b *testing.B) {
	const rows = 1 << 20
	type both struct {
		Value  int64
		Square float64
	}
	for _, c := range []struct {
		name string
		add  func(d *engine.Dataset) *engine.Dataset
	}{
		{"Range", func(d *engine.Dataset) *engine.Dataset { return d }},
		{"Map", func(d *engine.Dataset) *engine.Dataset {
			return Map(d, func(v int64) both { return both{v, float64(v) * float64(v)} })
		}},
		{"FlatMap", func(d *engine.Dataset) *engine.Dataset {
			return FlatMap(d, func(v int64, emit func(both)) error {
				emit(both{v, float64(v) * float64(v)})
				return nil
			})
		}},
		{"Filter", func(d *engine.Dataset) *engine.Dataset {
			return Filter(d, func(v int64) bool { return v%2 == 0 })
		}},
		{"MapBatch", func(d *engine.Dataset) *engine.Dataset {
			return MapBatch(d, engine.Schema{}, func(_ *engine.Context, in engine.Batch) (engine.Batch, error) {
				rows := arrowrows.Record(in)
				rows.Retain()
				return arrowrows.Batch(rows), nil
			})
		}},
		{"WithColumn", func(d *engine.Dataset) *engine.Dataset {
			return WithColumn(d, "square", func(v int64) float64 { return float64(v) * float64(v) })
		}},
		{"Vectorize", func(d *engine.Dataset) *engine.Dataset { return Vectorize(d, "v", "value", "value") }},
		{"ZipWithIndex", func(d *engine.Dataset) *engine.Dataset { return ZipWithIndex(d, "index") }},
		{"Sample", func(d *engine.Dataset) *engine.Dataset { return Sample(d, 0.5, SampleOptions{}) }},
		{"Rebalance", Rebalance},
		{"PartitionByHash", func(d *engine.Dataset) *engine.Dataset { return PartitionByHash(d, "value") }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				result, err := engine.Run(b.Context(), engine.Anonymous(func(bd *engine.Builder) error {
					engine.Collect(Count(c.add(Range(bd, 0, rows))), "out")
					return nil
				}), struct{}{}, engine.Parallelism(1))
				if err != nil {
					b.Fatal(err)
				}
				result.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
