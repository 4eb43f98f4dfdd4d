package operators

import (
	"context"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

// TestAggregatesGiveOneNaN aggregates NaNs with different bits, and infinities whose sum is
// NaN. Every aggregate must have the bits of math.NaN.
func TestAggregatesGiveOneNaN(t *testing.T) {
	type oddRow struct {
		Key   int64
		Value float64
	}
	var rows []oddRow
	for i, bits := range []uint64{0xfff8000000000000, 0x7ff8000000000abc, 0x7ff0000000000abc, 0xfff800000000beef} {
		rows = append(rows, oddRow{int64(i), math.Float64frombits(bits)}, oddRow{int64(i), 1}, oddRow{9, math.Float64frombits(bits)})
	}
	rows = append(rows, oddRow{10, math.Inf(1)}, oddRow{10, math.Inf(-1)})
	for _, p := range []int{1, 3} {
		result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(GroupBy(FromSlice(b, rows), "key").Aggregate(SumOf("value").As("sum"), MeanOf("value").As("mean"), MaxOf("value").As("max")), "out")
			return nil
		}), struct{}{}, engine.Parallelism(p), engine.Shards(8))
		require.NoError(t, err)
		recs, err := recordsOf(result, "out")
		require.NoError(t, err)
		found := 0
		for _, rec := range recs {
			for _, name := range []string{"sum", "mean", "max"} {
				for _, v := range rec.Column(rec.Schema().FieldIndices(name)[0]).(*array.Float64).Float64Values() {
					if v != v {
						found++
						require.Equal(t, math.Float64bits(math.NaN()), math.Float64bits(v), name)
					}
				}
			}
		}
		require.Equal(t, 5*3+2, found)
		result.Release()
	}
}
