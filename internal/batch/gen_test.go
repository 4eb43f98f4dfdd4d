package batch_test

import (
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
)

// This file uses only Arrow's builders and accessors, so that the tests compare the package
// with independent code.

var keyTypes = []string{
	"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
	"float32", "float64", "utf8", "binary", "date32", "timestamp[us]", "timestamp[ns, UTC]", "timestamp[s]",
}

var allTypes = append([]string{"vector[1]", "vector[3]", "vector32[2]", "vector", "vector32", "sparse", "sparse[9]"}, keyTypes...)

var edgeFloats = []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1e-8, 1e16, 1e21, 1e-4, 5e-324, math.MaxFloat64,
	math.NaN(), math.Float64frombits(0xfff8000000000123), math.Inf(1), math.Inf(-1), math.Pi, 1234567}

func drawSchema(t *rapid.T, types []string, least int) *arrow.Schema {
	n := rapid.IntRange(least, 5).Draw(t, "columns")
	cols := make([]batch.Column, n)
	for i := range cols {
		cols[i] = batch.Column{Name: fmt.Sprintf("c%d", i), Type: rapid.SampledFrom(types).Draw(t, "type"), Nullable: rapid.Bool().Draw(t, "nullable")}
	}
	schema, err := batch.Schema(cols)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// drawRecord returns a batch of random rows, which is usually a slice of a larger batch.
func drawRecord(t *rapid.T, mem memory.Allocator, schema *arrow.Schema) arrow.Record {
	before, rows, after := rapid.IntRange(0, 9).Draw(t, "before"), rapid.IntRange(0, 12).Draw(t, "rows"), rapid.IntRange(0, 3).Draw(t, "after")
	total := before + rows + after
	cols := make([]arrow.Array, schema.NumFields())
	for c, f := range schema.Fields() {
		b := array.NewBuilder(mem, f.Type)
		for range total {
			if f.Nullable && rapid.IntRange(0, 3).Draw(t, "null") == 0 {
				appendNull(b)
			} else {
				appendDrawn(t, b, f.Type)
			}
		}
		cols[c] = built(b, f.Type)
		defer cols[c].Release()
	}
	whole := array.NewRecord(schema, cols, int64(total))
	defer whole.Release()
	return whole.NewSlice(int64(before), int64(before+rows))
}

// built returns the array of a builder with the type dt. It sets the type, because Arrow's
// builder of fixed-size lists always declares the items as nullable.
func built(b array.Builder, dt arrow.DataType) arrow.Array {
	defer b.Release()
	arr := b.NewArray()
	defer arr.Release()
	d := arr.Data()
	typed := array.NewData(dt, d.Len(), d.Buffers(), d.Children(), d.NullN(), d.Offset())
	defer typed.Release()
	return array.MakeFromData(typed)
}

// appendNull appends a null. The components of a null vector are not null, because vector types
// declare them as non-null.
func appendNull(b array.Builder) {
	if l, ok := b.(*array.FixedSizeListBuilder); ok {
		l.Append(false)
		for range l.Type().(*arrow.FixedSizeListType).Len() {
			l.ValueBuilder().AppendEmptyValue()
		}
		return
	}
	b.AppendNull()
}

func drawFloat(t *rapid.T) float64 {
	if rapid.Bool().Draw(t, "edge") {
		return rapid.SampledFrom(edgeFloats).Draw(t, "float")
	}
	return rapid.Float64().Draw(t, "float")
}

func drawText(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "a", "ab", "abcdefgh", "abcdefghi", "abcdefgh\x00", "zebra", "Ärger", "x,\"y\"\n"}).Draw(t, "text")
}

// drawInt draws an integer from least to most. It is often small, so that equal values are
// frequent, which sorting and hashing must handle.
func drawInt(t *rapid.T, least, most int64) int64 {
	switch rapid.IntRange(0, 3).Draw(t, "how") {
	case 0:
		return rapid.SampledFrom([]int64{least, most, most - 1}).Draw(t, "int")
	case 1:
		return rapid.Int64Range(least, most).Draw(t, "int")
	}
	return rapid.Int64Range(0, 3).Draw(t, "int")
}

func appendDrawn(t *rapid.T, builder array.Builder, dt arrow.DataType) {
	switch b := builder.(type) {
	case *array.BooleanBuilder:
		b.Append(rapid.Bool().Draw(t, "bool"))
	case *array.Int8Builder:
		b.Append(int8(drawInt(t, math.MinInt8, math.MaxInt8)))
	case *array.Int16Builder:
		b.Append(int16(drawInt(t, math.MinInt16, math.MaxInt16)))
	case *array.Int32Builder:
		b.Append(int32(drawInt(t, math.MinInt32, math.MaxInt32)))
	case *array.Int64Builder:
		b.Append(drawInt(t, math.MinInt64, math.MaxInt64))
	case *array.Uint8Builder:
		b.Append(uint8(drawInt(t, 0, math.MaxUint8)))
	case *array.Uint16Builder:
		b.Append(uint16(drawInt(t, 0, math.MaxUint16)))
	case *array.Uint32Builder:
		b.Append(uint32(drawInt(t, 0, math.MaxUint32)))
	case *array.Uint64Builder:
		b.Append(uint64(drawInt(t, math.MinInt64, math.MaxInt64)))
	case *array.Float32Builder:
		b.Append(float32(drawFloat(t)))
	case *array.Float64Builder:
		b.Append(drawFloat(t))
	case *array.StringBuilder:
		b.Append(drawText(t))
	case *array.BinaryBuilder:
		b.Append([]byte(drawText(t)))
	case *array.Date32Builder:
		b.Append(arrow.Date32(drawInt(t, math.MinInt32, math.MaxInt32)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(drawInt(t, math.MinInt64, math.MaxInt64)))
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for range dt.(*arrow.FixedSizeListType).Len() {
			appendDrawn(t, b.ValueBuilder(), nil)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			appendDrawn(t, b.ValueBuilder(), nil)
		}
	case *array.StructBuilder:
		b.Append(true)
		indices, values := b.FieldBuilder(0).(*array.ListBuilder), b.FieldBuilder(1).(*array.ListBuilder)
		indices.Append(true)
		values.Append(true)
		for i := int32(0); i < 9; i++ {
			if rapid.IntRange(0, 3).Draw(t, "set") == 0 {
				indices.ValueBuilder().(*array.Int32Builder).Append(i)
				values.ValueBuilder().(*array.Float64Builder).Append(drawFloat(t))
			}
		}
	default:
		t.Fatalf("no values for %s", builder.Type())
	}
}

// cell returns a value as text without loss. It uses only Arrow's accessors.
func cell(arr arrow.Array, i int) string {
	if arr.IsNull(i) {
		return "null"
	}
	switch a := arr.(type) {
	case *array.Float32:
		return fmt.Sprintf("f32:%08x", math.Float32bits(a.Value(i)))
	case *array.Float64:
		return fmt.Sprintf("f64:%016x", math.Float64bits(a.Value(i)))
	case *array.Timestamp:
		return fmt.Sprintf("ts:%d", a.Value(i))
	case *array.Date32:
		return fmt.Sprintf("date:%d", a.Value(i))
	case *array.Binary:
		return fmt.Sprintf("bin:%x", a.Value(i))
	case *array.String:
		return fmt.Sprintf("str:%q", a.Value(i))
	case *array.Struct:
		return "{" + cell(a.Field(0), i) + cell(a.Field(1), i) + "}"
	case array.ListLike:
		lo, hi := a.ValueOffsets(i)
		var b strings.Builder
		for k := lo; k < hi; k++ {
			b.WriteString(cell(a.ListValues(), int(k)) + " ")
		}
		return "[" + b.String() + "]"
	}
	return arr.ValueStr(i)
}

// line returns a row as text without loss.
func line(rec arrow.Record, i int) string {
	parts := make([]string, rec.NumCols())
	for c := range parts {
		parts[c] = cell(rec.Column(c), i)
	}
	return strings.Join(parts, "|")
}

func lines(rec arrow.Record) []string {
	out := make([]string, rec.NumRows())
	for i := range out {
		out[i] = line(rec, i)
	}
	return out
}

// check tests a property with rapid. It passes an allocator to prop, and requires that all
// memory is released at the end.
func check(t rapid.TB, prop func(t *rapid.T, mem memory.Allocator)) {
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		prop(t, mem)
	})
}
