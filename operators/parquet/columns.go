package parquet

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Times in Parquet are either instants, which are adjusted to UTC, or local times. Arrow's
// writer writes times with the zone utc as instants, and times with any other zone, such as
// local, as local times.
const (
	utc   = "UTC"
	local = "local"
)

// storedType returns the type that a column of type t has in a file. Vectors become lists.
// Times in seconds become times in milliseconds, because Parquet has no times in seconds. The
// zone of times becomes utc or local.
func storedType(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case *arrow.FixedSizeListType:
		return arrow.ListOfNonNullable(t.Elem())
	case *arrow.TimestampType:
		stored := &arrow.TimestampType{Unit: t.Unit, TimeZone: utc}
		if t.Unit == arrow.Second {
			stored.Unit = arrow.Millisecond
		}
		if t.TimeZone == "" {
			stored.TimeZone = local
		}
		return stored
	}
	return t
}

func storedSchema(schema *arrow.Schema) *arrow.Schema {
	fields := schema.Fields()
	for i, f := range fields {
		fields[i].Type = storedType(f.Type)
	}
	return arrow.NewSchema(fields, nil)
}

// toStored returns rows with the types that their columns have in a file. The caller owns the
// result.
func toStored(mem memory.Allocator, stored *arrow.Schema, rows arrow.Record) (arrow.Record, error) {
	cols := make([]arrow.Array, 0, rows.NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, col := range rows.Columns() {
		switch c := col.(type) {
		case *array.FixedSizeList:
			cols = append(cols, listOf(mem, c, stored.Field(i).Type))
		case *array.Timestamp:
			made, err := toUnit(mem, c, stored.Field(i).Type)
			if err != nil {
				return nil, fmt.Errorf("column %q: %w", rows.ColumnName(i), err)
			}
			cols = append(cols, made)
		default:
			col.Retain()
			cols = append(cols, col)
		}
	}
	return array.NewRecord(stored, cols, rows.NumRows()), nil
}

// listOf returns vectors of a fixed size as lists. Null vectors become null lists without
// elements, because Parquet stores no components for a null.
func listOf(mem memory.Allocator, c *array.FixedSizeList, t arrow.DataType) arrow.Array {
	dim := int(c.DataType().(*arrow.FixedSizeListType).Len())
	elem := t.(*arrow.ListType).Elem()
	width := dim * elem.(arrow.FixedWidthDataType).Bytes()
	raw := c.ListValues().Data()
	from := raw.Buffers()[1].Bytes()[(raw.Offset()+c.Data().Offset()*dim)*elem.(arrow.FixedWidthDataType).Bytes():]

	n := c.Len()
	offsets, values := memory.NewResizableBuffer(mem), memory.NewResizableBuffer(mem)
	defer offsets.Release()
	defer values.Release()
	offsets.Resize(arrow.Int32Traits.BytesRequired(n + 1))
	values.Resize((n - c.NullN()) * width)
	ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	ends[0] = 0
	valid := memory.NewResizableBuffer(mem)
	defer valid.Release()
	valid.Resize((n + 7) / 8)
	clear(valid.Bytes())
	at := 0
	for i := range n {
		if c.IsValid(i) {
			valid.Bytes()[i/8] |= 1 << (i % 8)
			at += copy(values.Bytes()[at:], from[i*width:(i+1)*width])
		}
		ends[i+1] = int32(at / width * dim)
	}
	items := array.NewData(elem, at/width*dim, []*memory.Buffer{nil, values}, nil, 0, 0)
	defer items.Release()
	buffers := []*memory.Buffer{valid, offsets}
	if c.NullN() == 0 {
		buffers[0] = nil
	}
	list := array.NewData(t, n, buffers, []arrow.ArrayData{items}, c.NullN(), 0)
	defer list.Release()
	return array.MakeFromData(list)
}

// toUnit converts the times in c to t, the type that they have in a file.
func toUnit(mem memory.Allocator, c *array.Timestamp, t arrow.DataType) (arrow.Array, error) {
	if c.DataType().(*arrow.TimestampType).Unit != arrow.Second {
		return retyped(c, t), nil
	}
	return mapTimes(mem, c, t, func(v int64) (int64, error) {
		if v > math.MaxInt64/1000 || v < math.MinInt64/1000 {
			return 0, fmt.Errorf("%d seconds since 1970 are beyond what Parquet can hold in milliseconds", v)
		}
		return v * 1000, nil
	})
}

// retyped returns the times in c as type t, which has the same unit but may have another zone.
// The values are shared with c. The caller owns the result.
func retyped(c arrow.Array, t arrow.DataType) arrow.Array {
	d := c.Data()
	made := array.NewData(t, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset())
	defer made.Release()
	return array.MakeFromData(made)
}

// mapTimes returns times of type t whose values f computes from the values of c. Nulls stay
// null.
func mapTimes(mem memory.Allocator, c arrow.Array, t arrow.DataType, f func(int64) (int64, error)) (arrow.Array, error) {
	b := array.NewTimestampBuilder(mem, t.(*arrow.TimestampType))
	defer b.Release()
	b.Reserve(c.Len())
	for i, v := range c.(*array.Timestamp).TimestampValues() {
		if c.IsNull(i) {
			b.AppendNull()
			continue
		}
		made, err := f(int64(v))
		if err != nil {
			return nil, err
		}
		b.Append(arrow.Timestamp(made))
	}
	return b.NewArray(), nil
}

// fromStored converts a column of a file to its type t in rows. It takes ownership of col, and
// the caller owns the result.
func fromStored(mem memory.Allocator, col arrow.Array, t arrow.DataType) (arrow.Array, error) {
	want, ok := t.(*arrow.TimestampType)
	if !ok || arrow.TypeEqual(col.DataType(), t) {
		return col, nil
	}
	defer col.Release()
	if want.Unit == arrow.Second && col.DataType().(*arrow.TimestampType).Unit == arrow.Millisecond {
		return mapTimes(mem, col, t, func(v int64) (int64, error) {
			if v%1000 != 0 {
				return 0, fmt.Errorf("%d milliseconds in a column of seconds", v)
			}
			return v / 1000, nil
		})
	}
	return retyped(col, t), nil
}
