package rows_test

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// TestVectorsInAnotherPrecision converts whole columns and slices of columns to float32 and
// float64. The rows must not change, and for a slice only the values of the slice may be
// converted.
func TestVectorsInAnotherPrecision(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "v vector[2]", "w vector32[2] null", "l vector null", "m vector32", "s sparse"), `[
		{"v": [1, 2], "w": [1, 2], "l": [1, 2], "m": [1, 2], "s": {"indices": [4], "values": [7]}},
		{"v": [3, 4], "w": [3, 4], "l": [3], "m": [3], "s": {"indices": [], "values": []}},
		{"v": [5, 6], "l": [5, 6, 7], "m": [5, 6, 7], "s": {"indices": [1], "values": [1]}},
		{"v": [7, 8], "w": [7, 8], "m": [], "s": {"indices": [1], "values": [1]}}]`)
	defer rec.Release()
	for _, part := range [][2]int64{{0, 4}, {0, 2}, {1, 2}, {1, 4}, {3, 4}, {2, 2}} {
		slice := rec.NewSlice(part[0], part[1])
		for c, column := range slice.Columns() {
			for _, to := range []arrow.DataType{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64} {
				got := rows.WithComponents(mem, column, to)
				require.True(t, arrow.TypeEqual(rows.VectorsOf(column.DataType(), to), got.DataType()))
				require.Equal(t, column.Len(), got.Len())
				for i := range column.Len() {
					require.Equal(t, batch.FormatValue(column, i), batch.FormatValue(got, i), "column %d, row %d of %v", c, i, part)
				}
				if list, ok := got.(array.ListLike); ok && c == 0 && to.ID() == arrow.FLOAT32 && column.Len() > 0 {
					require.Equal(t, 2*column.Len(), list.ListValues().Len())
				}
				got.Release()
			}
		}
		slice.Release()
	}
}
