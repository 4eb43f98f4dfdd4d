//go:build linux && !race

package comqueue

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/offheap"
)

// TestBorrowed requires that rows are borrowed if any buffer of a column or of its children is
// in memory of the system to which the buffer holds no reference. It is not built for the race
// detector, under which all memory is on the Go heap.
func TestBorrowed(t *testing.T) {
	const n = 1 << 18 // number of 8-byte values; enough that the allocator takes memory from the system
	mem := offheap.NewAllocator(memory.NewGoAllocator())
	own := memory.NewResizableBuffer(mem)
	own.Resize(8 * n)
	defer own.Release()
	require.True(t, offheap.Contains(own.Bytes()))
	bare := memory.NewBufferBytes(own.Bytes()[64:])
	heap := memory.NewBufferBytes(make([]byte, 8*n))
	slice := memory.SliceBuffer(own, 128, 256)
	defer slice.Release()

	numbers := func(b *memory.Buffer) arrow.ArrayData {
		return array.NewData(arrow.PrimitiveTypes.Float64, 8, []*memory.Buffer{nil, b}, nil, 0, 0)
	}
	keys := func() *memory.Buffer { return memory.NewBufferBytes(make([]byte, 64)) }
	dictionary := func(b *memory.Buffer) arrow.ArrayData {
		texts := array.NewData(arrow.BinaryTypes.String, 2, []*memory.Buffer{nil, keys(), b}, nil, 0, 0)
		return array.NewDataWithDictionary(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, 2, []*memory.Buffer{nil, keys()}, 0, 0, texts)
	}
	vectors := func(b *memory.Buffer) arrow.ArrayData {
		return array.NewData(arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float64), 4, []*memory.Buffer{nil}, []arrow.ArrayData{numbers(b)}, 0, 0)
	}
	structs := func(b *memory.Buffer) arrow.ArrayData {
		return array.NewData(arrow.StructOf(arrow.Field{Name: "v", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float64)}), 4, []*memory.Buffer{nil}, []arrow.ArrayData{vectors(b)}, 0, 0)
	}
	nulls := func(b *memory.Buffer) arrow.ArrayData {
		return array.NewData(arrow.PrimitiveTypes.Float64, 8, []*memory.Buffer{b, heap}, nil, 0, 0)
	}
	for name, column := range map[string]func(b *memory.Buffer) arrow.ArrayData{
		"numbers": numbers, "nulls": nulls, "vectors": vectors, "structs": structs, "dictionary": dictionary,
	} {
		for _, c := range []struct {
			buffer *memory.Buffer
			want   bool
		}{{bare, true}, {heap, false}, {own, false}, {slice, false}} {
			made := array.MakeFromData(column(c.buffer))
			schema := arrow.NewSchema([]arrow.Field{{Name: "heap", Type: arrow.PrimitiveTypes.Float64}, {Name: "x", Type: made.DataType(), Nullable: true}}, nil)
			first := array.MakeFromData(array.NewData(arrow.PrimitiveTypes.Float64, made.Len(), []*memory.Buffer{nil, heap}, nil, 0, 0))
			require.Equal(t, c.want, borrowed(array.NewRecord(schema, []arrow.Array{first, made}, int64(made.Len()))), name)
		}
	}
}
