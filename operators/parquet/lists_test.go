package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// withFooter returns a file with a changed footer.
func withFooter(t testing.TB, data []byte, change func(*metadata.FileMetaData)) []byte {
	meta, err := readFooter(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	change(meta)
	at := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	out := bytes.NewBuffer(bytes.Clone(data[:at]))
	n, err := meta.WriteTo(out, nil)
	require.NoError(t, err)
	return append(binary.LittleEndian.AppendUint32(out.Bytes(), uint32(n)), "PAR1"...)
}

// pagesOf returns the offsets at which the pages of a column chunk begin, and the end of the
// last page.
func pagesOf(t testing.TB, data []byte, chunk *metadata.ColumnChunkMetaData) (starts []int64) {
	at := chunk.DataPageOffset()
	if chunk.HasDictionaryPage() {
		at = chunk.DictionaryPageOffset()
	}
	for end := at + chunk.TotalCompressedSize(); at < end; {
		starts = append(starts, at)
		h, rest, err := parseHead(data[at:])
		require.NoError(t, err)
		at = int64(len(data)-len(rest)) + h.packed
	}
	return append(starts, at)
}

// listsOf1000 returns a file of two row groups of 500 rows each, with small pages. Row i is
// null if i%7 is 1; otherwise it is a vector of i%4 components, or a number.
func listsOf1000(t testing.TB, kind string, version2 bool) []byte {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(t, "x "+kind+" null"))
	defer b.Release()
	for i := range 1000 {
		if i%7 == 1 {
			b.Field(0).AppendNull()
			continue
		}
		switch f := b.Field(0).(type) {
		case *array.Int64Builder:
			f.Append(int64(i))
		case *array.ListBuilder:
			f.Append(true)
			for k := range i % 4 {
				f.ValueBuilder().(*array.Float64Builder).Append(float64(i + k))
			}
		}
	}
	version := pq.DataPageV1
	if version2 {
		version = pq.DataPageV2
	}
	var out bytes.Buffer
	props := pq.NewWriterProperties(pq.WithStats(false), pq.WithDictionaryDefault(false), pq.WithDataPageVersion(version), pq.WithMaxRowGroupLength(500), pq.WithDataPageSize(400), pq.WithBatchSize(16))
	w, err := pqarrow.NewFileWriter(b.Schema(), &out, props, pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(b.NewRecord()))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// TestRowGroupsAreCounted requires, at every parallelism, that a file is refused if its row
// groups do not have the numbers of rows, values or pages that its footer claims. If it were
// read, rows would get values of other rows.
func TestRowGroupsAreCounted(t *testing.T) {
	for _, kind := range []string{"int64", "vector"} {
		for _, version2 := range []bool{false, true} {
			data := listsOf1000(t, kind, version2)
			rows := func(first, second int64) func(*metadata.FileMetaData) {
				return func(m *metadata.FileMetaData) { m.RowGroups[0].NumRows, m.RowGroups[1].NumRows = first, second }
			}
			values := func(group int, more int64) func(*metadata.FileMetaData) {
				return func(m *metadata.FileMetaData) { m.RowGroups[group].Columns[0].MetaData.NumValues += more }
			}
			pages := func(group, fewer int) func(*metadata.FileMetaData) {
				return func(m *metadata.FileMetaData) {
					chunk, err := m.RowGroup(group).ColumnChunk(0)
					require.NoError(t, err)
					starts := pagesOf(t, data, chunk)
					require.Greater(t, len(starts), 4)
					m.RowGroups[group].Columns[0].MetaData.TotalCompressedSize = starts[len(starts)-1-fewer] - starts[0]
				}
			}
			changes := map[string]func(*metadata.FileMetaData){
				"rows less":          rows(499, 501),
				"rows more":          rows(501, 499),
				"values less":        values(0, -1),
				"values more":        values(0, 1),
				"values many less":   values(0, -128),
				"values less at end": values(1, -1),
				"values more at end": values(1, 1),
				"a page less":        pages(0, 1),
				"pages less":         pages(0, 3),
				"a page less at end": pages(1, 1),
				"no pages":           func(m *metadata.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.TotalCompressedSize = 0 },
				"no values":          func(m *metadata.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.NumValues = 0 },
			}
			dir := t.TempDir()
			read := func(data []byte, p int) error {
				path := filepath.Join(dir, "x.parquet")
				require.NoError(t, os.WriteFile(path, data, 0o600))
				result, err := run(t, memory.NewGoAllocator(), func(b *engine.Builder) {
					engine.Collect(Read(b, path, ReadOptions{}), "rows")
				}, engine.Parallelism(p))
				if err == nil {
					result.Release()
				}
				return err
			}
			for _, p := range []int{1, 2, 3, 8} {
				require.NoError(t, read(withFooter(t, data, func(*metadata.FileMetaData) {}), p))
				for name, change := range changes {
					err := read(withFooter(t, data, change), p)
					require.ErrorContains(t, err, `x.parquet: column "x": row group `, fmt.Sprint(kind, version2, name, p))
				}
			}
		}
	}
}

// TestSparseVectorsWithNullParts requires that sparse vectors with null indices and empty
// values are refused, and also those with null values and empty indices.
func TestSparseVectorsWithNullParts(t *testing.T) {
	item := func(typ arrow.DataType) arrow.Field {
		return arrow.Field{Type: arrow.ListOfNonNullable(typ), Nullable: true}
	}
	indices, values := item(arrow.PrimitiveTypes.Int32), item(arrow.PrimitiveTypes.Float64)
	indices.Name, values.Name = "indices", "values"
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.StructOf(indices, values), Nullable: true}}, nil)
	for _, c := range []struct {
		indices, values bool // whether the indices and the values are not null
		want            string
	}{{true, true, ""}, {false, false, ""}, {false, true, "the indices of a sparse vector are null, and its values are not"}, {true, false, "the values of a sparse vector are null, and its indices are not"}} {
		b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
		x := b.Field(0).(*array.StructBuilder)
		x.Append(true)
		for i, there := range []bool{c.indices, c.values} {
			if list := x.FieldBuilder(i).(*array.ListBuilder); there {
				list.Append(true)
			} else {
				list.AppendNull()
			}
		}
		rows, err := cursorOf(t, bare(t, b.NewRecord(), form{})).read(1)
		if c.want != "" {
			require.ErrorContains(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.indices, rows.Column(0).IsValid(0))
	}
}

// TestListsThatAreTooLong requires that a list with more elements than an array can have is
// refused before it is read to its end.
func TestListsThatAreTooLong(t *testing.T) {
	const long = 1 << 20
	b := array.NewRecordBuilder(memory.NewGoAllocator(), batchtest.Schema(t, "x vector"))
	defer b.Release()
	list := b.Field(0).(*array.ListBuilder)
	list.Append(true)
	list.ValueBuilder().(*array.Float64Builder).AppendValues(make([]float64, long), nil)
	data := bare(t, b.NewRecord(), form{})
	read := func(most int, want string) uint64 {
		c := cursorOf(t, data)
		c.columns[0].list.(*denseColumn[float64]).lists.most = most
		return allocated(func() {
			rows, err := c.read(1)
			if want == "" {
				require.NoError(t, err)
				rows.Release()
				return
			}
			require.ErrorContains(t, err, want)
		})
	}
	whole := read(long, "")
	read(long-1, "1048576 components or more are in rows that are read together, which can have 1048575; ")
	require.Less(t, 4*read(long/16, " components or more are in rows that are read together, which can have 65536; "), whole)
}
