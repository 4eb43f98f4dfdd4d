package parquet

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/operators"
)

// TestWrongSchemas requires that a schema with elements that belong to no column, or with an
// unknown repetition, is refused.
func TestWrongSchemas(t *testing.T) {
	three := batchtest.Record(t, memory.NewGoAllocator(), batchtest.Schema(t, "x float64 null", "y int64", "z utf8"), `[{"x": 1, "y": 2, "z": "a"}, {"x": 3, "y": 4, "z": "b"}]`)
	data := bare(t, three, form{encoding: pq.Encodings.Plain})
	for to, want := range map[string]string{
		"\x15\x0a\x25\x12\x18\x01x": `its schema has 9 for the repetition of "x", which is 0, 1 or 2`,
		"\x15\x0a\x25\x01\x18\x01x": `its schema has -1 for the repetition of "x"`,
	} {
		_, err := openedAs(changed(t, data, "\x15\x0a\x25\x02\x18\x01x", to))
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, readsOnce(changed(t, data, "\x15\x0a\x25\x02\x18\x01x", "\x15\x0a\x25\x00\x18\x01x")), "a page begins with levels, which its column has none of")
	_, err := openedAs(changed(t, data, "schema\x15\x06", "schema\x15\x04"))
	require.ErrorContains(t, err, "its schema has 4 elements, of which 1 are not part of a column")
}

func openedAs(data []byte) (operators.RowFile, error) {
	return open(bytes.NewReader(data), int64(len(data)))
}

// node returns an optional element of a schema in Thrift's compact protocol: a group, or a
// column of int64 if children is 0.
func node(name string, children int64) string {
	number := func(head string, v int64) string { return head + string(binary.AppendVarint(nil, v)) }
	text := "\x18" + string(binary.AppendUvarint(nil, uint64(len(name)))) + name
	if children == 0 {
		return number("\x15", int64(pq.Types.Int64)) + number("\x25", 1) + text + "\x00"
	}
	return number("\x35", 1) + text + number("\x15", children) + "\x00"
}

// emptyFile returns a file without rows. Its schema consists of the given elements, and claims
// to have n elements.
func emptyFile(n int, elements string) []byte {
	footer := "\x15\x04\x19\xfc" + string(binary.AppendUvarint(nil, uint64(n))) + elements + "\x16\x00\x19\x0c\x00"
	return []byte("PAR1" + footer + string(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) + "PAR1")
}

// TestSchemasThatAreNoTrees requires that a schema that is too deep, or whose groups claim more
// or fewer children than they have, is refused before memory is allocated for it.
func TestSchemasThatAreNoTrees(t *testing.T) {
	const x = "\x15\x04\x25\x02\x18\x01x\x00"
	require.Equal(t, x, node("x", 0))
	deep := func(n int) []byte { return emptyFile(n+1, strings.Repeat(node("a", 1), n)+x) }
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"children of the root": {emptyFile(2, node("root", math.MaxInt32)+x), `its schema says that "root" has 2147483647 children, and has 1 more elements`},
		"children of a group":  {emptyFile(3, node("root", 1)+node("g", math.MaxInt32)+x), `its schema says that "g" has 2147483647 children`},
		"fewer than none":      {emptyFile(2, node("root", -1)+x), `its schema says that "root" has -1 children`},
		"more than 32 bits":    {emptyFile(2, node("root", 1<<32+1)+x), "its schema is damaged"},
		"another field":        {emptyFile(2, strings.Replace(node("root", 1), "\x15\x02", "\x05"+string(binary.AppendVarint(nil, 1<<16+5))+"\x02", 1)+x), "its schema is damaged"},
		"left over":            {emptyFile(3, node("root", 1)+x+x), "its schema has 3 elements, of which 1 are not part of a column"},
		"early end":            {emptyFile(4, node("root", 2)+node("g", 2)+x+x), "its schema ends early, after 4 elements"},
		"none":                 {emptyFile(0, ""), "its schema ends early, after 0 elements"},
		"fewer than it says":   {emptyFile(math.MaxInt32, node("root", 2)+x), "its schema is damaged"},
		"deep":                 {deep(deepestSchema + 1), `its schema has more than 100 groups in one another, down to "a"`},
		"deeper":               {deep(1_000_000), `its schema has more than 100 groups in one another, down to "a"`},
	} {
		var err error
		bytes := allocated(func() { _, err = openedAs(c.file) })
		require.ErrorContains(t, err, c.want, name)
		require.Less(t, bytes, uint64(1<<20+2*len(c.file)), name)
	}
	for _, file := range [][]byte{emptyFile(2, node("root", 1)+x), deep(deepestSchema), emptyFile(5, node("root", 2)+node("g", 2)+x+x+x)} {
		_, err := openedAs(file)
		require.NoError(t, err)
	}
}

// TestFootersThatAreNone requires errors that say why the bytes at the end of a file are not a
// footer.
func TestFootersThatAreNone(t *testing.T) {
	good := emptyFile(2, node("root", 1)+node("x", 0))
	n := len(good)
	for want, file := range map[string][]byte{
		"it is no Parquet file: it has 4 bytes":           good[:4],
		"it does not end in PAR1":                         good[:n-1],
		"its footer is encrypted, which is not supported": append(bytes.Clone(good[:n-1]), 'E'),
		"its footer says that it has 4294967295 bytes":    append(bytes.Clone(good[:n-8]), "\xff\xff\xff\xffPAR1"...),
		"its footer is damaged":                           append(bytes.Clone(good[:n-8]), "\x02\x00\x00\x00PAR1"...),
		`column "x": its schema has a logical type that`:  emptyFile(2, node("root", 1)+strings.Replace(node("x", 0), "x\x00", "x\x25\x00\x00", 1)),
	} {
		_, err := openedAs(file)
		require.ErrorContains(t, err, want)
	}
}

// TestColumnsThatAreNoTypes requires an error that names the column if a column's type is
// invalid, even if the library then cannot read the whole schema.
func TestColumnsThatAreNoTypes(t *testing.T) {
	const logical = "such as text of a fixed number of bytes"
	const text = "\x15\x0e\x15\x10\x15\x02\x18\x01f\x25\x00\x00" // a fixed-length text of 8 bytes
	x := node("x", 0)
	list := func(name, repetition, ofChild string) string { // the list's child has the name e
		return "\x35" + repetition + "\x18" + string(rune(len(name))) + name + "\x15\x02\x15\x06\x00" + "\x15\x0a\x25" + ofChild + "\x18\x01e\x00"
	}
	for want, file := range map[string][]byte{
		`column "f": its schema has a logical type that its physical type cannot have, ` + logical: emptyFile(3, node("root", 2)+x+text),
		`column "g": its schema has a logical type that its physical type cannot have, ` + logical: emptyFile(5, node("root", 2)+x+node("g", 2)+x+text),
		`column "l": LIST groups must not be repeated`:                                             emptyFile(4, node("root", 2)+x+list("l", "\x04", "\x04")),
		`column "m": non-repeated nodes in a list group are not supported`:                         emptyFile(4, node("root", 2)+x+list("m", "\x02", "\x02")),
		`its schema does not say whether "x" is required, optional or repeated`:                    emptyFile(2, node("root", 1)+"\x15\x04\x38\x01x\x00"),
	} {
		_, err := openedAs(file)
		require.ErrorContains(t, err, want)
	}
	_, err := openedAs(emptyFile(4, "\x48\x04root\x15\x04\x00"+x+list("l", "\x02", "\x04")))
	require.NoError(t, err, "a root without repetition must be accepted")
}

// TestComponentsThatAreNull requires that a vector with a null component is refused with an
// error that names its column, row group and page.
func TestComponentsThatAreNull(t *testing.T) {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64)}}, nil))
	defer b.Release()
	lists := b.Field(0).(*array.ListBuilder)
	for range 3 {
		lists.Append(true)
		lists.ValueBuilder().(*array.Float64Builder).AppendValues([]float64{1, 2}, []bool{true, false})
	}
	_, err := rowsAs(t, bare(t, b.NewRecord(), form{}), 1, 1)
	require.ErrorContains(t, err, `x.parquet: column "x": row group 0, page 0: a component is null; fill it in first`)
}

// TestEncryptedColumns requires that reading an encrypted column fails with the column's name,
// and that other columns can be read.
func TestEncryptedColumns(t *testing.T) {
	rec := batchtest.Record(t, memory.NewGoAllocator(), batchtest.Schema(t, "x int64", "secret int64"), `[{"x": 1, "secret": 2}]`)
	data := withFooter(t, bare(t, rec, form{}), func(m *metadata.FileMetaData) {
		crypto := reflect.ValueOf(m.RowGroups[0].Columns[1]).Elem().FieldByName("CryptoMetadata")
		crypto.Set(reflect.New(crypto.Type().Elem()))
		key := crypto.Elem().FieldByName("ENCRYPTION_WITH_FOOTER_KEY")
		key.Set(reflect.New(key.Type().Elem()))
	})
	require.NoError(t, readsColumn(data, 0))
	require.ErrorContains(t, readsColumn(data, 1), `column "secret": row group 0: it is encrypted, which is not supported`)
}

// TestJSON requires that JSON values are read as text.
func TestJSON(t *testing.T) {
	rec := batchtest.Record(t, memory.NewGoAllocator(), batchtest.Schema(t, "x utf8 null"), `[{"x": "{\"a\": 1}"}, {"x": null}, {"x": "[]"}]`)
	data := withFooter(t, bare(t, rec, form{}), func(m *metadata.FileMetaData) {
		x := m.FileMetaData.Schema[1]
		x.LogicalType, *x.ConvertedType = nil, 19
	})
	path := filepath.Join(t.TempDir(), "x.parquet")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	requireRows(t, fewSettings, rec, func(b *engine.Builder) *engine.Dataset { return Read(b, path, ReadOptions{}) })
}

// TestFootersWithoutColumns requires that, if the footer does not describe a column of a row
// group, the file is refused with the column's name.
func TestFootersWithoutColumns(t *testing.T) {
	data := listsOf1000(t, "int64", false)
	for want, change := range map[string]func(*metadata.FileMetaData){
		"row group 1: the footer does not describe it":                                     func(m *metadata.FileMetaData) { m.RowGroups[1].Columns[0].MetaData = nil },
		"row group 1: the footer describes 0 columns, where the schema has 1":              func(m *metadata.FileMetaData) { m.RowGroups[1].Columns = m.RowGroups[1].Columns[:0] },
		"row group 0: it has 500 rows and, it says, -1 values":                             func(m *metadata.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.NumValues = -1 },
		"its pages are compressed by LZ4, which is not supported: write the file with sna": func(m *metadata.FileMetaData) { m.RowGroups[1].Columns[0].MetaData.Codec = 5 },
	} {
		_, err := rowsAs(t, withFooter(t, data, change), 1, 1)
		require.ErrorContains(t, err, `x.parquet: column "x": `+want)
	}
}
