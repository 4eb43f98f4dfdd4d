package operators

import (
	"math"
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// flowerRecords returns flowers in batches of the given sizes. Each batch is a slice of a
// larger batch.
func flowerRecords(t *testing.T, sizes ...int) []arrow.Record {
	t.Helper()
	mem := batchtest.Allocator(t)
	codec, err := batch.NewCodec[flower]()
	require.NoError(t, err)
	n := 0
	for _, size := range sizes {
		n += size
	}
	all := flowers(n)
	var recs []arrow.Record
	for _, size := range sizes {
		whole, err := codec.Record(mem, all[:size])
		require.NoError(t, err)
		part := batchtest.WithOffset(t, mem, whole)
		whole.Release()
		t.Cleanup(part.Release)
		recs, all = append(recs, part), all[size:]
	}
	return recs
}

func TestFromBatches(t *testing.T) {
	for _, sizes := range [][]int{{0}, {3}, {0, 0, 5, 0, 1, 90, 4, 0}, {100}, {1, 0, 1}} {
		recs := flowerRecords(t, sizes...)
		n := 0
		for _, size := range sizes {
			n += size
		}
		var want []string
		for i, f := range flowers(n) {
			want = append(want, f.text(place(i, n)))
		}
		requireRows(t, flowerColumns, want, func(b *engine.Builder) *engine.Dataset { return fromRecords(b, recs) })
	}
}

// TestFromBatchesHash requires that the hash does not depend on the layout of buffers, and that
// different rows have different hashes.
func TestFromBatchesHash(t *testing.T) {
	recs := flowerRecords(t, 5, 5)
	codec, err := batch.NewCodec[flower]()
	require.NoError(t, err)
	plain, err := codec.Record(batchtest.Allocator(t), flowers(5))
	require.NoError(t, err)
	defer plain.Release()
	hash := func(recs ...arrow.Record) string {
		h, err := hashRecords(recs)
		require.NoError(t, err)
		return h
	}
	require.Equal(t, hash(plain), hash(recs[0]))
	require.NotEqual(t, hash(plain), hash(recs[1]))
	require.NotEqual(t, hash(plain), hash(plain, recs[1]))
}

// TestContentHashes compares hashes of rows with the hashes in earlier versions of Superstep,
// and requires that hashing takes little memory.
func TestContentHashes(t *testing.T) {
	recs := flowerRecords(t, 5, 0, 1500, 1024)
	content, err := hashRecords(recs)
	require.NoError(t, err)
	require.Equal(t, "a61d86bd9790656f558392233b08f274", content)
	codec, err := batch.NewCodec[flower]()
	require.NoError(t, err)
	for n, want := range map[int]string{
		0: "3398618b52b3e42ce7f0bd8b1f85ee01", 5: "0ed4fa761ea091e40ad944cb18195992",
		1024: "57bb2dea3dd1d1aea666337e1dca1546", 1500: "f68ebf1ecc2392de3f4256178ba336b3",
	} {
		content, err := hashSlice(codec, flowers(n))
		require.NoError(t, err)
		require.Equal(t, want, content)
	}
	require.LessOrEqual(t, testing.AllocsPerRun(5, func() { _, _ = hashRecords(recs) }), 40.0)
}

// TestFromBatchesWithoutColumns requires that, if batches have no columns, only the number of
// rows is hashed, so that hashing takes the same time for any number of rows.
func TestFromBatchesWithoutColumns(t *testing.T) {
	most := array.NewRecord(arrow.NewSchema(nil, nil), nil, math.MaxInt32)
	_, err := checkRecords([]arrow.Record{most})
	require.NoError(t, err)
	content, err := hashRecords([]arrow.Record{most})
	require.NoError(t, err)
	var want contentHash
	want.number(math.MaxInt32)
	require.Equal(t, want.String(), content, "only the number of rows must be hashed")
	var rows []string
	for i := range 6 {
		rows = append(rows, strconv.Itoa(place(i, 6)))
	}
	three := array.NewRecord(arrow.NewSchema(nil, nil), nil, 3)
	requireRows(t, "", rows, func(b *engine.Builder) *engine.Dataset {
		return fromRecords(b, []arrow.Record{three, three})
	})
}

func TestFromBatchesMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return fromRecords(b, nil) }, "FromBatches: no batch is given")
	recs := flowerRecords(t, 2)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return fromRecords(b, []arrow.Record{recs[0], nil})
	}, "FromBatches: batch 1 is the zero value")
	other, err := batch.Select(recs[0], []int{1, 0})
	require.NoError(t, err)
	defer other.Release()
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return fromRecords(b, []arrow.Record{recs[0], other})
	}, `FromBatches: batch 1 has other columns than batch 0: column 1 is "name utf8" instead of "id int64"`)
	many := array.NewRecord(arrow.NewSchema(nil, nil), nil, 1<<31)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return fromRecords(b, []arrow.Record{many, many})
	}, "FromBatches: batch 0: 2147483648 rows, where a batch holds at most 2147483647")
	requireMisuse(t, func(*engine.Builder) *engine.Dataset { return fromRecords(nil, recs) }, "the builder is nil")
}
