package parquet

import (
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// splitRows returns the rows that the program in the README of testdata/split has written.
func splitRows(t *testing.T) arrow.Record {
	schema := batchtest.Schema(t, "f32 float32", "f32_null float32 null", "f64 float64", "f64_null float64 null", "i32 int32", "i32_null int32 null", "i64 int64", "i64_null int64 null",
		"u16 uint16", "u16_null uint16 null", "day date32", "day_null date32 null", "time timestamp[us]", "time_null timestamp[us] null", "list vector", "list_null vector null")
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	defer b.Release()
	for i := range int64(40) {
		for c, f := range b.Fields() {
			if c%2 == 1 && (i%3 == 1 || i > 30) {
				f.AppendNull()
				continue
			}
			switch f := f.(type) {
			case *array.Float32Builder:
				f.Append(float32(i)/8 - 2)
			case *array.Float64Builder:
				f.Append(float64(i) / 3)
			case *array.Int32Builder:
				f.Append(int32(i*i*1000003 - 1<<30))
			case *array.Int64Builder:
				f.Append(i*i*i*i*i*i*i*i*i*i*i - 1<<62)
			case *array.Uint16Builder:
				f.Append(uint16(65535 - i*i))
			case *array.Date32Builder:
				f.Append(arrow.Date32(i*400 - 5000))
			case *array.TimestampBuilder:
				f.Append(arrow.Timestamp(i * 86_400_000_001))
			case *array.ListBuilder:
				f.Append(true)
				for k := range i % 4 {
					f.ValueBuilder().(*array.Float64Builder).Append(float64(k) / 8)
				}
			}
		}
	}
	return b.NewRecord()
}

// TestSplitBytesOfOthers requires that columns in the encoding BYTE_STREAM_SPLIT, written by
// another program, are read with the right values.
func TestSplitBytesOfOthers(t *testing.T) {
	for _, name := range []string{"split1", "split2"} {
		requireRows(t, fewSettings, splitRows(t), func(b *engine.Builder) *engine.Dataset {
			return Read(b, filepath.Join("testdata", "split", name+".parquet"), ReadOptions{})
		})
	}
}

// TestSplitBytes requires that a page in BYTE_STREAM_SPLIT is refused if it does not have
// exactly the bytes of its numbers, or if the column's type does not support this encoding.
func TestSplitBytes(t *testing.T) {
	var v numbers[int32]
	require.NoError(t, v.open(byteStreamSplit, 2, []byte{1, 2, 0, 0, 0, 0, 0, 0x80}))
	got := make([]int32, 2)
	require.NoError(t, v.next(got[:1]))
	require.NoError(t, v.next(got[1:]))
	require.Equal(t, []int32{1, 2 - 1<<31}, got)
	require.Error(t, v.next(got[:1]))
	for _, n := range []int{0, 1, 3, 1 << 30} {
		require.ErrorContains(t, v.open(byteStreamSplit, n, make([]byte, 8)), "in bytes that are split, has 8 bytes, where they have 4 each")
	}
	for _, other := range []decoder{&numbers[int64]{times96: true}, &texts{}, &truths{}} {
		require.ErrorContains(t, other.open(byteStreamSplit, 1, make([]byte, 12)), "the encoding BYTE_STREAM_SPLIT of a page is not one of its column's type that is supported")
	}
}
