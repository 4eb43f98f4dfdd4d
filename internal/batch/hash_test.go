package batch_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// refKey returns the documented encoding of a value. It is a second implementation, which uses
// only Arrow's accessors.
func refKey(arr arrow.Array, i int) []byte {
	word := func(tag byte, v uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{tag}, v) }
	float := func(x float64) []byte {
		if math.IsNaN(x) {
			return word(3, 0x7ff8000000000000)
		}
		if x == 0 {
			return word(3, 0)
		}
		return word(3, math.Float64bits(x))
	}
	if arr.IsNull(i) {
		return []byte{0}
	}
	switch a := arr.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return word(1, 1)
		}
		return word(1, 0)
	case *array.Int8:
		return word(2, uint64(a.Value(i)))
	case *array.Int16:
		return word(2, uint64(a.Value(i)))
	case *array.Int32:
		return word(2, uint64(a.Value(i)))
	case *array.Int64:
		return word(2, uint64(a.Value(i)))
	case *array.Uint8:
		return word(2, uint64(a.Value(i)))
	case *array.Uint16:
		return word(2, uint64(a.Value(i)))
	case *array.Uint32:
		return word(2, uint64(a.Value(i)))
	case *array.Uint64:
		return word(2, a.Value(i))
	case *array.Float32:
		return float(float64(a.Value(i)))
	case *array.Float64:
		return float(a.Value(i))
	case *array.String:
		return append(word(4, uint64(len(a.Value(i)))), a.Value(i)...)
	case *array.Binary:
		return append(word(4, uint64(len(a.Value(i)))), a.Value(i)...)
	case *array.Date32:
		return word(5, uint64(a.Value(i)))
	case *array.Timestamp:
		return word(6, uint64(a.Value(i)))
	}
	panic(arr.DataType())
}

func TestHashIsXXH3OfTheDocumentedEncoding(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		rec := drawRecord(t, mem, drawSchema(t, keyTypes, 1))
		defer rec.Release()
		cols := rapid.SliceOfN(rapid.IntRange(0, int(rec.NumCols())-1), 0, 3).Draw(t, "key")
		got := make([]uint64, rec.NumRows())
		require.NoError(t, batch.Hash(rec, cols, got))
		var keys batch.Keys
		require.NoError(t, keys.Reset(rec, cols))
		for i := range got {
			var want []byte
			for _, c := range cols {
				want = append(want, refKey(rec.Column(c), i)...)
			}
			require.Equal(t, xxh3.HashSeed(want, 0), got[i])
			require.Equal(t, string(want), string(keys.Append(nil, i)))
			shard := batch.ShardOf(got[i], 128)
			require.True(t, shard >= 0 && shard < 128 && uint64(shard) == got[i]%128)
		}
	})
}

// TestHashGolden requires certain hashes. They must never change, because they decide the shard
// of a row and so the result of every shuffle. The hash of the empty key is the value that the
// xxHash project publishes for the empty input.
func TestHashGolden(t *testing.T) {
	mem := batchtest.Allocator(t)
	hash := func(typ, value string) string {
		rec := batchtest.Record(t, mem, batchtest.Schema(t, "k "+typ+" null"), `[{"k": `+value+`}]`)
		defer rec.Release()
		out := make([]uint64, 1)
		require.NoError(t, batch.Hash(rec, []int{0}, out))
		return fmt.Sprintf("%016x", out[0])
	}
	golden := map[string][][2]string{
		"f4bb4faee1b8237a": {{"int8", "5"}, {"int16", "5"}, {"int32", "5"}, {"int64", "5"}, {"uint8", "5"}, {"uint64", "5"}},
		"51957c455b8e6c65": {{"int8", "-1"}, {"int64", "-1"}},
		"d1d30c5e8136b99d": {{"float64", "0"}, {"float64", "-0.0"}, {"float32", "-0.0"}},
		"70827c21a1fdf17c": {{"float64", "0.5"}, {"float32", "0.5"}},
		"a849877be0234960": {{"float64", `"NaN"`}, {"float32", `"NaN"`}},
		"a048b5cb82162577": {{"bool", "true"}},
		"cb396d45fc4d1e58": {{"utf8", `"setosa"`}, {"binary", `"c2V0b3Nh"`}},
		"ee53fd1b240e9dc6": {{"utf8", `""`}},
		"c44bdff4074eecdb": {{"utf8", "null"}, {"int64", "null"}, {"float64", "null"}},
		"e013d7a8213d495d": {{"date32", `"1970-01-06"`}},
		"b27ec9e60fc43bae": {{"timestamp[s]", `"1970-01-01T00:00:05"`}},
	}
	for want, values := range golden {
		for _, v := range values {
			require.Equal(t, want, hash(v[0], v[1]), "%s %s", v[0], v[1])
		}
	}
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "a int32", "b utf8"), `[{"a": 5, "b": "setosa"}]`)
	defer rec.Release()
	out := make([]uint64, 1)
	require.NoError(t, batch.Hash(rec, []int{0, 1}, out))
	require.Equal(t, "f0d0c89782956f1b", fmt.Sprintf("%016x", out[0]))
	require.NoError(t, batch.Hash(rec, nil, out))
	require.Equal(t, uint64(0x2d06800538d394c2), out[0])
	var keys batch.Keys
	require.NoError(t, keys.Reset(rec, []int{0, 1}))
	require.Equal(t, "020500000000000000"+"040600000000000000"+hex.EncodeToString([]byte("setosa")), hex.EncodeToString(keys.Append(nil, 0)))
}

func TestHashRefuses(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "v vector[1]"), `[{"v": [1]}]`)
	defer rec.Release()
	require.EqualError(t, batch.Hash(rec, []int{0}, make([]uint64, 1)),
		`hash key: column "v" is vector[1]; a key must be a bool, number, text, date or timestamp`)
	require.ErrorContains(t, batch.Hash(rec, []int{1}, make([]uint64, 1)), "no column 1")
	require.ErrorContains(t, batch.Hash(rec, nil, nil), "0 places for 1 rows")
}

func TestHashAllocatesPerBatchOnly(t *testing.T) {
	mem := memory.NewGoAllocator()
	b := array.NewInt64Builder(mem)
	for i := range 1000 {
		b.Append(int64(i))
	}
	arr := b.NewArray()
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "k", Type: arr.DataType()}}, nil), []arrow.Array{arr}, 1000)
	out := make([]uint64, 1000)
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { _ = batch.Hash(rec, []int{0}, out) }), 2.0)
}

func BenchmarkHash(b *testing.B) {
	const rows = 8192
	mem := memory.NewGoAllocator()
	ids, names := array.NewInt64Builder(mem), array.NewStringBuilder(mem)
	for i := range rows {
		ids.Append(int64(i))
		names.Append(fmt.Sprintf("name-%d", i))
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String}}, nil)
	rec := array.NewRecord(schema, []arrow.Array{ids.NewArray(), names.NewArray()}, rows)
	out := make([]uint64, rows)
	for name, cols := range map[string][]int{"int64": {0}, "utf8": {1}, "both": {0, 1}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = batch.Hash(rec, cols, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}

func BenchmarkSortIndices(b *testing.B) {
	const rows = 8192
	mem := memory.NewGoAllocator()
	xs := array.NewFloat64Builder(mem)
	for i := range rows {
		xs.Append(float64((i * 5923) % rows))
	}
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64}}, nil), []arrow.Array{xs.NewArray()}, rows)
	var dst []int32
	for b.Loop() {
		dst, _ = batch.SortIndices(rec, []batch.SortKey{{Column: 0}}, dst)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}
