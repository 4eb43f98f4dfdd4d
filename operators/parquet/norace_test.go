//go:build !race

package parquet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// The tests in this file are not built for the race detector. They have only one goroutine, in
// which there can be no race, and process so many bytes that they would be slow.

// TestPackedBombs requires that a page that decompresses to more bytes than its header claims
// is refused before memory is allocated for the bytes, whatever the compressed bytes claim. A
// page that decompresses to fewer bytes must be refused too.
func TestPackedBombs(t *testing.T) {
	const mega = 1 << 20
	cs := compress.Codecs
	small := zeros(t, cs.Zstd, 8)
	for name, c := range map[string]struct {
		codec  compress.Compression
		packed []byte
		size   int64
		most   uint64
	}{
		"snappy":                {cs.Snappy, zeros(t, cs.Snappy, 64*mega), 64 * mega, mega},
		"gzip":                  {cs.Gzip, zeros(t, cs.Gzip, 64*mega), 64 * mega, mega},
		"LZ4":                   {lz4Raw, zeros(t, lz4Raw, 64*mega), 64 * mega, mega},
		"brotli":                {cs.Brotli, zeros(t, cs.Brotli, 64*mega), 64 * mega, 24 * mega},
		"zstd, size unknown":    {cs.Zstd, zstdZeros(512), 64 * mega, mega},
		"zstd, a second frame":  {cs.Zstd, append(bytes.Clone(small), zstdZeros(512)...), 64*mega + 8, mega},
		"zstd, what is skipped": {cs.Zstd, append([]byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}, zstdZeros(512)...), 64 * mega, mega},
	} {
		for _, size := range []int64{1, 8, 8000, c.size - 1, c.size + 1, 1<<31 - 1} {
			most := c.most
			if size > 8000 {
				most = 0 // for such a size, allocations are bounded only by a multiple of the decompressed size
			}
			var err error
			bytes := allocated(func() { _, err = unpackPage(c.codec, nil, c.packed, size) })
			require.ErrorContains(t, err, "which they do not", "%s, with claimed size %d", name, size)
			if most > 0 {
				require.Less(t, bytes, most, "%s, with claimed size %d: the allocated bytes must not exceed the bound", name, size)
			} else {
				require.Less(t, bytes, uint64(5*c.size+mega), "%s, with claimed size %d: the allocated bytes must not exceed the bound", name, size)
			}
		}
		data, err := unpackPage(c.codec, nil, c.packed, c.size)
		require.NoError(t, err, name)
		require.Equal(t, make([]byte, c.size), data, name)
	}
}

// TestSameBytesBeyondTheDictionary writes columns whose dictionaries become too large, so that
// they have two encodings. It requires that the footer lists the encodings in the same order in
// every run, for each of two row groups.
func TestSameBytesBeyondTheDictionary(t *testing.T) {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(t, "x float64", "t utf8", "v vector"))
	defer b.Release()
	const rows = 1 << 17 // each row has 8 bytes; the dictionary takes the first half of the rows, which are 1 MiB
	for i := range 2 * rows {
		b.Field(0).(*array.Float64Builder).Append(float64(i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("text ", i))
		b.Field(2).(*array.ListBuilder).Append(true)
		b.Field(2).(*array.ListBuilder).ValueBuilder().(*array.Float64Builder).Append(float64(i))
	}
	rec := b.NewRecord()
	defer rec.Release()
	first := requireSameBytes(t, rec, 6)
	meta, err := readFooter(bytes.NewReader(first), int64(len(first)))
	require.NoError(t, err)
	for group := range 2 {
		for i := range 3 {
			chunk, err := meta.RowGroup(group).ColumnChunk(i)
			require.NoError(t, err)
			require.Len(t, chunk.EncodingStats(), 3, "there must be a dictionary page, pages that use it and pages that do not")
		}
	}
	written, err := cursorOf(t, first).read(2 * rows)
	require.NoError(t, err)
	require.True(t, array.Equal(rec.Column(0), written.Column(0)))
}

// TestSameBytesOfLargeMetadata writes columns with long names, and with long texts, whose minimum
// and maximum are part of the metadata. Files with metadata of about 4 KiB for a column must be the
// same in every run.
func TestSameBytesOfLargeMetadata(t *testing.T) {
	for _, name := range []int{4, 1990, 3960} {
		for total := 4010; total < 4045; total += 4 { // number of bytes of the name, the minimum and the maximum together
			length := max(8, (total-name)/2)
			b := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(t, strings.Repeat("n", name)+" utf8"))
			for i := range 3<<19/length + 1 { // 1.5 times as many as a dictionary can hold
				b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("%0*d", length, i))
			}
			rec := b.NewRecord()
			requireSameBytes(t, rec, 5)
			rec.Release()
			b.Release()
		}
	}
}

// TestSameBytesOfLongNames makes the same requirement as TestSameBytesOfLargeMetadata. The
// second column has the longest texts that are stored in the metadata.
func TestSameBytesOfLongNames(t *testing.T) {
	for _, name := range []int{2000, 2001, 2900, 3000, 3400, 4060} {
		b := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(t, "a int64", strings.Repeat("n", name)+" utf8"))
		for i := range 5000 {
			b.Field(0).(*array.Int64Builder).Append(int64(i))
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("%0*d", 512, i))
		}
		rec := b.NewRecord()
		requireSameBytes(t, rec, 8)
		rec.Release()
		b.Release()
	}
}

// requireSameBytes writes rows as two row groups several times, requires that the files are the
// same, and returns the first.
func requireSameBytes(t *testing.T, rows arrow.Record, times int) []byte {
	t.Helper()
	var first []byte
	for run := range times {
		var out bytes.Buffer
		w, err := newWriter(&out, rows.Schema(), compress.Codecs.Snappy, memory.NewGoAllocator())
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, w.Write(arrowrows.Batch(rows)))
		}
		require.NoError(t, w.Close())
		if run == 0 {
			first = out.Bytes()
		}
		require.True(t, bytes.Equal(first, out.Bytes()), "run %d must write the bytes of the first run", run)
	}
	return first
}
