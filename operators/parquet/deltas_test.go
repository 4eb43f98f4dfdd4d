package parquet

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// deltaRows are what the README of testdata/deltas writes.
func deltaRows(t *testing.T) arrow.Record {
	schema := batchtest.Schema(t, "id int64 null", "long int64 null", "unsigned uint64 null", "int int32 null",
		"clock timestamp[us] null", "utc timestamp[ms, UTC] null", "none int64 null")
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	defer b.Release()
	for i := range int64(1500) {
		b.Field(0).(*array.Int64Builder).Append(i*3 - 5)
		b.Field(6).AppendNull()
		if i%7 == 3 || i >= 800 && i < 900 {
			for _, f := range b.Fields()[1:6] {
				f.AppendNull()
			}
			continue
		}
		sign := 1 - i%2*2
		b.Field(1).(*array.Int64Builder).Append(sign * i * i * i * i * i * 1214)
		b.Field(2).(*array.Uint64Builder).Append(1<<63 + uint64(i*i))
		b.Field(3).(*array.Int32Builder).Append(int32(i*i*900 - 1<<30))
		b.Field(4).(*array.TimestampBuilder).Append(arrow.Timestamp(i * 86_400_000_001))
		b.Field(5).(*array.TimestampBuilder).Append(arrow.Timestamp(i*1000 - 500_000))
	}
	return b.NewRecord()
}

func TestDeltasOfOthers(t *testing.T) {
	for _, name := range []string{"pages1", "pages2"} {
		requireRows(t, fewSettings, deltaRows(t), func(b *engine.Builder) *engine.Dataset {
			return Read(b, filepath.Join("testdata", "deltas", name+".parquet"), ReadOptions{})
		})
	}
}

// inDeltas writes rows with the library alone, with pages of about so many bytes. Columns are of
// the encoding, from a start with a dictionary, if wanted, that becomes too large.
func inDeltas(t require.TestingT, rec arrow.Record, groupRows int64, dictionary bool, page int64) []byte {
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &out, pq.NewWriterProperties(pq.WithMaxRowGroupLength(groupRows), pq.WithDataPageSize(page), pq.WithBatchSize(16),
		pq.WithDictionaryDefault(dictionary), pq.WithDictionaryPageSizeLimit(256), pq.WithEncoding(pq.Encodings.DeltaBinaryPacked)), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// longs are rows of numbers of 64 bits, nil for those that are null.
func longs(t testing.TB, values []*int64) arrow.Record {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(t, "x int64 null"))
	defer b.Release()
	for _, v := range values {
		if v == nil {
			b.Field(0).AppendNull()
			continue
		}
		b.Field(0).(*array.Int64Builder).Append(*v)
	}
	return b.NewRecord()
}

// TestAnyDeltas reads any numbers back, in whatever pages and row groups, in parts of any size.
func TestAnyDeltas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := rapid.OneOf(rapid.Int64Range(-3, 100), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0}), rapid.Int64())
		var want []*int64
		for range rapid.IntRange(0, 200).Draw(rt, "pairs") { // the library's writer fails over pages of nulls alone
			want = append(want, rapid.Ptr(number, false).Draw(rt, "number"), rapid.Ptr(number, true).Draw(rt, "or null"))
		}
		data := inDeltas(rt, longs(t, want), 2*rapid.Int64Range(1, 250).Draw(rt, "group"), rapid.Bool().Draw(rt, "dictionary"), rapid.Int64Range(1, 2000).Draw(rt, "page"))
		r, err := file.NewParquetReader(bytes.NewReader(data))
		require.NoError(rt, err)
		f, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.NewGoAllocator())
		require.NoError(rt, err)
		d := newDeltas(r, f.Manifest.Fields[0], 0)
		var got []*int64
		for part := rapid.Int64Range(1, 200).Draw(rt, "part"); ; {
			chunks, err := d.NextBatch(part)
			require.NoError(rt, err)
			if chunks.Len() == 0 {
				break
			}
			require.Equal(rt, int(min(part, int64(len(want)-len(got)))), chunks.Len())
			got = append(got, numbersOf(chunks)...)
			chunks.Release()
		}
		require.Equal(rt, append([]*int64{}, want...), append([]*int64{}, got...))
	})
}

// numbersOf returns the numbers of a column of int64.
func numbersOf(c *arrow.Chunked) (all []*int64) {
	for _, chunk := range c.Chunks() {
		for i, v := range chunk.(*array.Int64).Int64Values() {
			if all = append(all, nil); chunk.IsValid(i) {
				all[len(all)-1] = &v
			}
		}
	}
	return all
}

// TestDeltasAfterDictionaries reads files whose columns begin with a dictionary, and go on with
// deltas where it has become too large.
func TestDeltasAfterDictionaries(t *testing.T) {
	values := make([]*int64, 6000)
	for i := range values {
		if v := int64(i) * 1_000_003; i%5 != 0 {
			values[i] = &v
		}
	}
	rec := longs(t, values)
	for _, dictionary := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "x.parquet")
		require.NoError(t, os.WriteFile(path, inDeltas(t, rec, 2500, dictionary, 4096), 0o600))
		requireRows(t, fewSettings, rec, func(b *engine.Builder) *engine.Dataset { return Read(b, path, ReadOptions{}) })
	}
}
