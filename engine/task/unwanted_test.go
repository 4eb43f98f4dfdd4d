package task

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
)

// TestUnwantedRowsAreNotSent requires that rows of shards that nobody reads are not sent: the outputs
// have no network, so that sending one panics.
func TestUnwantedRowsAreNotSent(t *testing.T) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil))
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	rows := b.NewRecord()
	defer rows.Release()

	direct := &directOutput{wanted: make([]bool, 4)}
	require.NoError(t, direct.emit(t.Context(), 2, rows))
	require.Zero(t, direct.rows, "the receiver is told how many rows it gets")

	for _, shards := range []int{4, 1024} { // many rows for each shard, and few
		split := &splitOutput{shards: shards, wanted: make([]bool, shards), batchRows: 8, messageBytes: 1 << 20, keepBytes: 1 << 20, place: func(_ arrow.Record, _ int, _ int64, dst []int32) error {
			for i := range dst {
				dst[i] = int32(i)
			}
			return nil
		}}
		require.NoError(t, split.emit(t.Context(), 0, rows))
		require.NoError(t, split.flush(t.Context(), 0))
		require.Equal(t, int64(3), split.first, "later rows keep their numbers")
	}
}
