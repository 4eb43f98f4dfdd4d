package parquet

import (
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// BenchmarkWrite writes 256 Ki random numbers in batches of 64 Ki numbers: as a column, as a
// column with random nulls, and as vectors.
func BenchmarkWrite(b *testing.B) {
	const numbers, batches, dim = 1 << 16, 4, 32
	for _, kind := range []string{"float64", "float64 null", "vector"} {
		b.Run(kind, func(b *testing.B) {
			draws := rand.New(rand.NewPCG(1, 2))
			builder := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(b, "x "+kind))
			defer builder.Release()
			for i := range numbers {
				switch f := builder.Field(0).(type) {
				case *array.Float64Builder:
					if kind == "float64 null" && draws.IntN(4) == 0 {
						f.AppendNull()
						continue
					}
					f.Append(draws.Float64())
				case *array.ListBuilder:
					if i%dim == 0 {
						f.Append(true)
					}
					f.ValueBuilder().(*array.Float64Builder).Append(draws.Float64())
				}
			}
			rows := builder.NewRecord()
			defer rows.Release()
			b.SetBytes(8 * numbers * batches)
			for b.Loop() {
				w, err := newWriter(io.Discard, rows.Schema(), compress.Codecs.Snappy, memory.NewGoAllocator())
				require.NoError(b, err)
				for range batches {
					require.NoError(b, w.Write(arrowrows.Batch(rows)))
				}
				require.NoError(b, w.Close())
			}
		})
	}
}
