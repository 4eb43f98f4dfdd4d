package parquet

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// TestPagesAreReadOneByOne requires that reading rows of a large row group takes the memory of
// a few pages, not of the row group. Pages may be larger or smaller than the read buffer.
func TestPagesAreReadOneByOne(t *testing.T) {
	const n = 1 << 20
	b := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(t, "x float64", "text utf8"))
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Float64Builder).Append(float64(i) / 8)
		b.Field(1).(*array.StringBuilder).Append([]string{"a", "of a dictionary", "c"}[i%3])
	}
	rec := b.NewRecord()
	for _, page := range []int64{1000, 50_000, 300_000} {
		var out bytes.Buffer
		props := pq.NewWriterProperties(pq.WithStats(false), pq.WithDictionaryDefault(false), pq.WithDictionaryFor("text", true), pq.WithMaxRowGroupLength(n), pq.WithDataPageSize(page))
		w, err := pqarrow.NewFileWriter(rec.Schema(), &out, props, pqarrow.DefaultWriterProps())
		require.NoError(t, err)
		require.NoError(t, w.Write(rec))
		require.NoError(t, w.Close())
		f, err := openedAs(out.Bytes())
		require.NoError(t, err)
		require.Less(t, allocated(func() {
			rows, err := f.Rows(0, []int{0, 1}, memory.NewGoAllocator())
			require.NoError(t, err)
			some, err := rows.Next(1024)
			require.NoError(t, err)
			some.Release()
		}), uint64(1<<20), page)
		rows, err := f.Rows(0, []int{0, 1}, memory.NewGoAllocator())
		require.NoError(t, err)
		for at := int64(0); at < n; {
			some, err := rows.Next(100_000)
			require.NoError(t, err)
			got := arrowrows.Record(some)
			want := rec.NewSlice(at, at+got.NumRows())
			for c := range want.NumCols() {
				require.True(t, array.Equal(want.Column(int(c)), got.Column(int(c))), "with pages of size %d, the rows from row %d on must be those that were written", page, at)
			}
			at += got.NumRows()
		}
	}
}

// TestLongHeads requires that the header of a page may be longer than the read buffer, and that
// a header that never ends is reported.
func TestLongHeads(t *testing.T) {
	const long = 200_000
	head := []byte{0x15, 0, 0x15, 6, 0x15, 6, 0x2c, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6} // a page of 3 bytes and 1 value
	head = append(append(binary.AppendUvarint(append(head, 0x18), long), make([]byte, long)...), 0, 0)
	data := append(head, "abc"...)
	l := leaf{file: bytes.NewReader(data), end: int64(len(data))}
	h, err := l.head()
	require.NoError(t, err)
	require.Equal(t, int64(1), h.values)
	require.Equal(t, int64(3), l.left())
	require.NoError(t, l.have(h.packed))
	require.Equal(t, "abc", string(l.rest))
	l = leaf{file: bytes.NewReader(data), end: long}
	_, err = l.head()
	require.EqualError(t, err, "the head of a page is damaged")
}

// TestDictionariesTakeLittle requires that a dictionary takes about the memory of its page,
// even if all its entries are empty.
func TestDictionariesTakeLittle(t *testing.T) {
	const n = 1 << 18
	var v texts
	empty := make([]byte, 4*n)
	require.Less(t, allocated(func() { require.NoError(t, v.dictionary(n, empty)) }), uint64(12*n))

	page := []byte("\x03\x00\x00\x00abc\x00\x00\x00\x00\x01\x00\x00\x00d")
	require.NoError(t, v.dictionary(3, page))
	require.NoError(t, v.open(rleDictionary, 4, []byte{2, 3, 0b10_00_01_10, 0})) // a group of packed indices that begins with 2, 1, 0, 2
	ends := make([]int32, 4)
	require.NoError(t, v.next(ends))
	require.Equal(t, "dabcd", string(v.data))
	require.Equal(t, []int32{1, 1, 4, 5}, ends)
}
