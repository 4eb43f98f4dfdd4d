package batch_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
)

// schemaStream returns a stream of no batches, as Arrow writes it.
func schemaStream(t *testing.T, schema *arrow.Schema) []byte {
	var out bytes.Buffer
	require.NoError(t, ipc.NewWriter(&out, ipc.WithSchema(schema)).Close())
	return out.Bytes()
}

// followFlat follows references from the root table of a FlatBuffer, and returns the position
// of the last table or vector. Each slot is the number of a field of a table or, if it is
// negative, of an element of a vector: -1 is the first.
func followFlat(b []byte, slots ...int) int {
	word := func(at int) int { return int(int32(binary.LittleEndian.Uint32(b[at:]))) }
	at := word(0)
	for _, slot := range slots {
		from := at + 4*-slot // the elements are after the length
		if slot >= 0 {
			vtable := at - word(at)
			from = at + int(binary.LittleEndian.Uint16(b[vtable+4+2*slot:]))
		}
		at = from + word(from)
	}
	return at
}

// shareFirst returns a copy of stream in which all elements of the vector at slots (see
// followFlat) refer to its first element.
func shareFirst(stream []byte, slots ...int) []byte {
	b := bytes.Clone(stream)
	flat := b[8:] // the metadata are after the continuation mark and the length
	at := followFlat(flat, slots...)
	first := followFlat(flat, append(slots, -1)...)
	for i := range int(binary.LittleEndian.Uint32(flat[at:])) {
		from := at + 4 + 4*i
		binary.LittleEndian.PutUint32(flat[from:], uint32(first-from))
	}
	return b
}

// TestSharedTextTakesNoMemory requires an error for a stream whose metadata have very many
// references to one long text, of which the decoder would make a copy for each reference. The
// original stream must be readable.
func TestSharedTextTakesNoMemory(t *testing.T) {
	const n = 2000
	long := strings.Repeat("x", 100_000)
	var columns, children []arrow.Field
	var keys, values []string
	for i := range n {
		name := fmt.Sprint(i)
		if i == 0 {
			name = long
		}
		f := arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64}
		columns, children = append(columns, f), append(children, f)
		keys, values = append(keys, fmt.Sprint(i)), append(values, name)
	}
	metadata := arrow.NewMetadata(keys, values)
	one := arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Metadata: metadata}
	nested := arrow.Field{Name: "a", Type: arrow.StructOf(children...)}
	const header, fields, ofSchema, child, ofField = 2, 1, 2, 5, 6
	for _, c := range []struct {
		name   string
		schema *arrow.Schema
		vector []int
	}{
		{"columns", arrow.NewSchema(columns, nil), []int{header, fields}},
		{"metadata of the schema", arrow.NewSchema(columns[1:2], &metadata), []int{header, ofSchema}},
		{"metadata of a column", arrow.NewSchema([]arrow.Field{one}, nil), []int{header, fields, -1, ofField}},
		{"columns of a column", arrow.NewSchema([]arrow.Field{nested}, nil), []int{header, fields, -1, child}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stream := schemaStream(t, c.schema)
			schema, err := batch.ReadSchema(bytes.NewReader(stream))
			require.NoError(t, err)
			require.True(t, schema.Equal(c.schema))
			head := func(b []byte) []byte { return b[8:][:binary.LittleEndian.Uint32(b[4:])] }
			require.NoError(t, batch.CheckHead(head(stream), nil))

			shared := shareFirst(stream, c.vector...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = batch.NewStreamReader(bytes.NewReader(shared), memory.DefaultAllocator)
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, "its metadata refer to the same bytes again and again")
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*len(shared)))
			require.ErrorContains(t, batch.CheckHead(head(shared), nil), "again and again")
		})
	}
}

// TestNamesAreCutInMessages requires that messages cut long names of columns, because names in
// files may have any length.
func TestNamesAreCutInMessages(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: long, Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.StructOf(arrow.Field{Name: long, Type: arrow.Null})},
		{Name: long, Type: arrow.Null},
	}, nil)
	_, find := batch.FindColumn(schema, long)
	_, missing := batch.FindColumn(schema, "a"+long)
	_, read := batch.NewStreamReader(bytes.NewReader(schemaStream(t, schema)), memory.DefaultAllocator)
	_, normal := batch.NormalizeSchema(arrow.NewSchema(schema.Fields()[1:], nil))
	for want, err := range map[string]error{
		`columns 1 and 3 are both named "xxx`: batch.DistinctNames(schema),
		`2 columns are named "xxx`:            find,
		`no column "axxx`:                     missing,
		`column "b": type struct<xxx`:         read,
		`column "b": type struct<xx`:          normal,
	} {
		require.ErrorContains(t, err, want)
		require.Less(t, len(err.Error()), 500)
	}
	require.NoError(t, batch.DistinctNames(arrow.NewSchema(schema.Fields()[:2], nil)))
}
