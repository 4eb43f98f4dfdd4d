package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// manyPages returns a file of the rows that Arrow's library has written without this package,
// in one row group of small pages.
func manyPages(t testing.TB, rec arrow.Record, properties ...pq.WriterProperty) []byte {
	var out bytes.Buffer
	properties = append([]pq.WriterProperty{pq.WithStats(false), pq.WithDataPageSize(4000), pq.WithBatchSize(256), pq.WithMaxRowGroupLength(rec.NumRows())}, properties...)
	w, err := pqarrow.NewFileWriter(rec.Schema(), &out, pq.NewWriterProperties(properties...), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// words returns n rows of a column x with the given number of different texts.
func words(t testing.TB, n, different int) arrow.Record {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(t, "x utf8"))
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprint("word ", i*7%different))
	}
	return b.NewRecord()
}

// requireSame requires that a file has the rows of the records, in order.
func requireSame(t testing.TB, data []byte, want ...arrow.Record) {
	rows := cursorOf(t, data)
	for k, rec := range want {
		for at := int64(0); at < rec.NumRows(); {
			got, err := rows.read(min(700, rec.NumRows()-at))
			require.NoError(t, err)
			require.True(t, array.Equal(rec.NewSlice(at, at+got.NumRows()).Column(0), got.Column(0)), "record %d must have the rows of the file that begin at row %d", k, at)
			at += got.NumRows()
		}
	}
}

// TestDictionariesStay requires that an uncompressed dictionary keeps its entries when later
// pages overwrite the read buffer from which it was decoded.
func TestDictionariesStay(t *testing.T) {
	rec := words(t, 120_000, 20_000)
	data := manyPages(t, rec, pq.WithDictionaryDefault(true), pq.WithCompression(codecs[Uncompressed]))
	chunk, err := mustMeta(t, data).RowGroup(0).ColumnChunk(0)
	require.NoError(t, err)
	starts := pagesOf(t, data, chunk)
	require.Greater(t, starts[1]-starts[0], int64(64<<10), "the dictionary must be larger than the bytes that are read ahead, or the test proves nothing")
	require.Greater(t, starts[len(starts)-1]-starts[1], int64(128<<10), "the other pages must be larger than the read buffer, or the test proves nothing")
	requireSame(t, data, rec)
}

func mustMeta(t testing.TB, data []byte) *metadata.FileMetaData {
	meta, err := readFooter(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return meta
}

// TestRowGroupsOfOtherCodecs requires that each row group is decompressed by its own codec, and
// that no buffer is overwritten that an earlier row group still uses.
func TestRowGroupsOfOtherCodecs(t *testing.T) {
	for _, dictionary := range []bool{false, true} {
		var data []byte
		var all *metadata.FileMetaData
		var want []arrow.Record
		for k, codec := range []Compression{Uncompressed, Snappy, Uncompressed, Zstd, Snappy, Uncompressed} {
			rec := words(t, 5000-500*k, 4000) // each page fits in the buffer of the previous page
			part := manyPages(t, rec, pq.WithDataPageSize(1<<20), pq.WithDictionaryDefault(dictionary), pq.WithCompression(codecs[codec]))
			meta := mustMeta(t, part)
			if want = append(want, rec); k == 0 {
				data, all = part, meta
				continue
			}
			shift := int64(len(data))
			group := meta.RowGroups[0]
			group.Columns[0].MetaData.DataPageOffset += shift
			if offset := group.Columns[0].MetaData.DictionaryPageOffset; offset != nil {
				*offset += shift
			}
			data, all.RowGroups, all.NumRows = append(data, part...), append(all.RowGroups, group), all.NumRows+rec.NumRows()
		}
		end := bytes.NewBuffer(data)
		n, err := all.WriteTo(end, nil)
		require.NoError(t, err)
		requireSame(t, append(binary.LittleEndian.AppendUint32(end.Bytes(), uint32(n)), "PAR1"...), want...)
	}
}

// TestListsThatEndEarly requires an error if fewer lists begin in a row group than the row
// group has rows according to the footer. The error must occur at the end of the row group,
// before the next row group is opened.
func TestListsThatEndEarly(t *testing.T) {
	for _, version2 := range []bool{false, true} {
		data := withFooter(t, listsOf1000(t, "vector", version2), func(m *metadata.FileMetaData) {
			m.RowGroups[0].NumRows += 3
			m.RowGroups[1].NumRows -= 3
		})
		rows := cursorOf(t, data)
		_, err := rows.read(500)
		require.ErrorContains(t, err, "the values of the row group end 3 rows early")
		require.ErrorContains(t, err, "row group 0, page ")
	}
}

// TestDictionariesOfOldFiles requires that files of parquet-mr before version 1.2.9 can be
// read. These versions did not include the header of the dictionary page in the size of the
// column.
func TestDictionariesOfOldFiles(t *testing.T) {
	rec := words(t, 300, 300)
	for by, read := range map[string]bool{"parquet-mr version 1.2.8": true, "parquet-mr version 1.2.9": false, "another version 1.2.8": false} {
		data := manyPages(t, rec, pq.WithDictionaryDefault(true), pq.WithCompression(codecs[Snappy]))
		data = withFooter(t, data, func(m *metadata.FileMetaData) {
			chunk, err := m.RowGroup(0).ColumnChunk(0)
			require.NoError(t, err)
			h, rest, err := parseHead(data[chunk.DictionaryPageOffset():])
			require.NoError(t, err)
			require.Equal(t, int64(pageOfDictionary), h.kind)
			m.RowGroups[0].Columns[0].MetaData.TotalCompressedSize -= int64(len(data)-len(rest)) - chunk.DictionaryPageOffset()
			*m.CreatedBy = by
		})
		if read {
			requireSame(t, data, rec)
			continue
		}
		_, err := cursorOf(t, data).read(300)
		require.ErrorContains(t, err, "a page says it has", by)
	}
}
