package operators

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// strangeTypes are types that rows cannot have, with different numbers of field nodes and
// buffers in the Arrow format.
var strangeTypes = []arrow.DataType{
	arrow.Null, &arrow.Decimal128Type{Precision: 9, Scale: 2}, arrow.FixedWidthTypes.Float16, arrow.FixedWidthTypes.Date64,
	&arrow.FixedSizeBinaryType{ByteWidth: 3}, arrow.ListOf(arrow.BinaryTypes.String), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8),
	arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.LargeString, Nullable: true}),
	arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), arrow.LargeListOf(arrow.Null),
	arrow.SparseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "t", Type: arrow.BinaryTypes.String, Nullable: true}}, []arrow.UnionTypeCode{0, 1}),
	arrow.DenseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, []arrow.UnionTypeCode{0}),
	arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String),
}

// strangeBytes returns an Arrow file of n rows of arrowRows, in batches of the given size, with
// a column of a strange type before each column and after the last column.
func strangeBytes(t *testing.T, n, size int, options ...ipc.Option) []byte {
	mem := memory.NewGoAllocator()
	var out bytes.Buffer
	var w *ipc.Writer
	for from := 0; from < n; from += size {
		rows := min(size, n-from)
		rec := arrowRows(t, mem, from, rows)
		var fields []arrow.Field
		var cols []arrow.Array
		for i, dt := range strangeTypes {
			b := array.NewBuilder(mem, dt)
			for k := range rows {
				if k%2 == 0 {
					b.AppendEmptyValue()
				} else {
					b.AppendNull()
				}
			}
			fields, cols = append(fields, arrow.Field{Name: fmt.Sprint("odd", i), Type: dt, Nullable: true}), append(cols, b.NewArray())
			if i < int(rec.NumCols()) {
				fields, cols = append(fields, rec.Schema().Field(i)), append(cols, rec.Column(i))
			}
		}
		schema := arrow.NewSchema(fields, nil)
		if w == nil {
			w = ipc.NewWriter(&out, append(options, ipc.WithSchema(schema))...)
		}
		require.NoError(t, w.Write(array.NewRecord(schema, cols, int64(rows))))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// TestReadArrowLeavesOutStrangeColumns requires that ReadArrow leaves out columns of types that
// rows cannot have, if LeaveOut is set, and reads the other columns as if there were no such
// columns.
func TestReadArrowLeavesOutStrangeColumns(t *testing.T) {
	require.Len(t, strangeTypes, len(arrowColumns)+1)
	for name, options := range map[string][]ipc.Option{"plain": nil, "lz4": {ipc.WithLZ4()}} {
		path := filepath.Join(writeFiles(t, map[string]string{"a.arrow": string(strangeBytes(t, 50, 11, options...))}), "a.arrow")
		left := map[string]string{}
		requireRows(t, strings.Join(arrowColumns, " | "), arrowLines(t, 50), func(b *engine.Builder) *engine.Dataset {
			return ReadArrow(b, path, ArrowOptions{LeaveOut: func(column, problem string) { left[column] = problem }})
		})
		require.Len(t, left, len(strangeTypes), name)
		require.Equal(t, "type decimal(9, 2) is not supported; write the column as float64", left["odd1"])
		requireRows(t, "t utf8 null", func() (lines []string) {
			for i, row := range arrowLines(t, 50) {
				cells := strings.Split(row, " | ")
				lines = append(lines, fmt.Sprintf("%d | %s", place(i, 50), cells[5]))
			}
			return lines
		}(), func(b *engine.Builder) *engine.Dataset {
			return ReadArrow(b, path, ArrowOptions{Columns: []string{"t"}})
		})
		requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return ReadArrow(b, path, ArrowOptions{}) }, `column "odd0": type null is not supported; it has no values`)
		requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
			return ReadArrow(b, path, ArrowOptions{Columns: []string{"t", "odd1"}, LeaveOut: func(_, _ string) {}})
		}, `column "odd1": type decimal(9, 2) is not supported`)
	}
	two := batchtest.Schema(t, "x int64")
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(two))
	require.NoError(t, w.Close())
	dir := writeFiles(t, map[string]string{"a": string(strangeBytes(t, 5, 5)), "b": out.String()})
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return ReadArrow(b, dir, ArrowOptions{LeaveOut: func(_, _ string) {}})
	}, "differ in those whose types are not supported")
}
