package parquet

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// deltaRows returns the rows that the program in the README of testdata/deltas has written.
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

// inDeltas returns a file of the rows that Arrow's library has written without this package, in
// the encoding DELTA_BINARY_PACKED and in pages of about page bytes. If dictionary is set, each
// column begins with a dictionary, and the writer gives up the dictionary when it becomes too
// large.
func inDeltas(t require.TestingT, rec arrow.Record, groupRows int64, dictionary bool, page int64) []byte {
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &out, pq.NewWriterProperties(pq.WithMaxRowGroupLength(groupRows), pq.WithDataPageSize(page), pq.WithBatchSize(16),
		pq.WithDictionaryDefault(dictionary), pq.WithDictionaryPageSizeLimit(256), pq.WithEncoding(pq.Encodings.DeltaBinaryPacked)), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// longs returns rows of one int64 column; a nil value is null.
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

// TestAnyDeltas requires that arbitrary numbers, written in pages and row groups of any size,
// are read unchanged in parts of any size.
func TestAnyDeltas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := rapid.OneOf(rapid.Int64Range(-3, 100), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0}), rapid.Int64())
		var want []*int64
		for range rapid.IntRange(0, 200).Draw(rt, "pairs") { // each pair has a number that is not null, because the library's writer fails for a page of nulls only
			want = append(want, rapid.Ptr(number, false).Draw(rt, "number"), rapid.Ptr(number, true).Draw(rt, "or null"))
		}
		data := inDeltas(rt, longs(t, want), 2*rapid.Int64Range(1, 250).Draw(rt, "group"), rapid.Bool().Draw(rt, "dictionary"), rapid.Int64Range(1, 2000).Draw(rt, "page"))
		rows := cursorOf(rt, data)
		var got []*int64
		for part := rapid.Int64Range(1, 200).Draw(rt, "part"); len(got) < len(want); {
			rec, err := rows.read(min(part, int64(len(want)-len(got))))
			require.NoError(rt, err)
			got = append(got, numbersOf(rec)...)
			rec.Release()
		}
		require.Equal(rt, append([]*int64{}, want...), append([]*int64{}, got...))
	})
}

// cursorOf returns a cursor over the first column of a file.
func cursorOf(t require.TestingT, data []byte) *cursor {
	f, err := open(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	rows, err := f.Rows(0, []int{0}, memory.NewGoAllocator())
	require.NoError(t, err)
	return rows.(*cursor)
}

// numbersOf returns the numbers of a column of int64.
func numbersOf(rec arrow.Record) (all []*int64) {
	column := rec.Column(0).(*array.Int64)
	for i, v := range column.Int64Values() {
		if all = append(all, nil); column.IsValid(i) {
			all[len(all)-1] = &v
		}
	}
	return all
}

// TestDeltasAfterDictionaries requires that files can be read whose columns begin with a
// dictionary and continue with deltas when the dictionary has become too large.
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

// TestCraftedDeltas reads deltas whose heads claim more values than there are, or huge blocks.
// Complete data must be read, incomplete data must give an error, and neither may take much
// memory.
func TestCraftedDeltas(t *testing.T) {
	head := func(block, minis, n uint64, blocks ...byte) (data []byte) {
		for _, v := range []uint64{block, minis, n, 10} {
			data = binary.AppendUvarint(data, v)
		}
		return append(data, blocks...)
	}
	for name, c := range map[string]struct {
		data  []byte
		error string
	}{
		"ordinary":            {head(128, 4, 9, 2, 0, 0, 0, 0), ""},
		"one wide part":       {head(1<<29, 1, 9, 2, 0), ""},
		"one part of all":     {head(1<<31-128, 1, 9, 2, 0), ""},
		"bits of a wide part": {head(1<<29, 1, 9, 2, 1), "end early"},
		"larger blocks":       {head(1<<31, 1, 9, 2, 0), "in blocks of 2147483648"},
		"largest blocks":      {head(1<<63, 1<<62, 9, 2, 0), "in blocks of 9223372036854775808"},
		"many parts":          {head(1<<30, 1<<25, 9, 2, 0, 0, 0), "end early"},
		"more parts":          {head(1<<62, 1<<62, 9, 2, 0), "in blocks of"},
		"no parts":            {head(128, 0, 9, 2, 0), "in 0 parts"},
		"no block":            {head(0, 1, 9, 2, 0), "in blocks of 0"},
		"odd parts":           {head(128, 8, 9, 2, 0), "in 8 parts"},
		"more numbers":        {head(128, 4, 1<<40, 2, 0, 0, 0, 0), "says it has 1099511627776 deltas"},
		"fewer numbers":       {head(128, 4, 8, 2, 0, 0, 0, 0), "says it has 8 deltas"},
		"65 bits":             {head(128, 4, 9, 2, 65, 0, 0, 0), "65 bits"},
		"cut widths":          {head(128, 4, 9, 2, 0, 0, 0), "end early"},
		"cut head":            {[]byte{128, 1, 4, 9}, "end early"},
		"no blocks":           {head(128, 4, 9), "end early"},
	} {
		var got [9]int64
		bytes := allocated(func() {
			d, rest, err := newDeltas[int64](9, c.data)
			if c.error != "" {
				require.ErrorContains(t, err, c.error, name)
				return
			}
			require.NoError(t, err, name)
			require.Empty(t, rest)
			require.NoError(t, d.read(got[:4]))
			require.NoError(t, d.read(got[4:]))
			require.Error(t, d.read(got[:1]))
			require.Equal(t, [9]int64{5, 6, 7, 8, 9, 10, 11, 12, 13}, got, name)
		})
		require.Less(t, bytes, uint64(1<<20), name)
	}
}
