package model

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// writer builds columns from the cells of rows.
type writer struct {
	fields []arrow.Field
	cells  []int // cells[i] is the index of the cell with the value of fields[i]
	build  *batch.RecordBuilder
	put    []func(c *Cell) error
}

// newWriter returns a writer of the columns outputs. cells[i] is the index of the cell for
// outputs[i]. Memory is allocated from mem.
func newWriter(mem columnar.Allocator, outputs []engine.Column, cells []int) (*writer, error) {
	schema, err := columnar.NewSchema(outputs...)
	if err != nil {
		return nil, err
	}
	fields := arrowrows.Arrow(schema).Fields()
	build, err := batch.NewRecordBuilder(mem, arrowrows.Arrow(schema))
	if err != nil {
		return nil, err
	}
	w := &writer{fields: fields, cells: cells, build: build}
	for i, f := range fields {
		w.put = append(w.put, putter(build.Field(i), f.Type))
	}
	return w, nil
}

// append adds a row.
func (w *writer) append(row []Cell) error {
	for i, put := range w.put {
		c := &row[w.cells[i]]
		if c.Kind == NullCell {
			if !w.fields[i].Nullable {
				return fmt.Errorf("column %q is null, and declared without nulls", w.fields[i].Name)
			}
			batch.AppendNull(w.build.Field(i))
			continue
		}
		if err := put(c); err != nil {
			return fmt.Errorf("column %q: %w", w.fields[i].Name, err)
		}
	}
	return nil
}

// columns returns the columns of the rows that were appended. The caller owns them.
func (w *writer) columns() ([]arrow.Array, error) { return w.build.NewColumns() }

func (w *writer) release() { w.build.Release() }

// putter returns a function that appends the value of a cell to a builder of the type dt. The
// cell must not be null.
func putter(builder array.Builder, dt arrow.DataType) func(c *Cell) error {
	switch b := builder.(type) {
	case *array.BooleanBuilder:
		return func(c *Cell) error {
			if c.Kind != BoolCell {
				return mismatch(c, dt)
			}
			b.Append(c.Int != 0)
			return nil
		}
	case *array.StringBuilder:
		return func(c *Cell) error {
			if c.Kind != TextCell {
				return mismatch(c, dt)
			}
			b.Append(c.Text)
			return nil
		}
	case *array.Float64Builder:
		return numbers(dt, func(v float64) bool { b.Append(v); return true })
	case *array.Float32Builder:
		return numbers(dt, func(v float64) bool { b.Append(float32(v)); return true })
	case *array.Int64Builder:
		return whole(dt, math.MinInt64, math.MaxInt64, func(v int64) { b.Append(v) })
	case *array.Int32Builder:
		return whole(dt, math.MinInt32, math.MaxInt32, func(v int64) { b.Append(int32(v)) })
	case *array.Int16Builder:
		return whole(dt, math.MinInt16, math.MaxInt16, func(v int64) { b.Append(int16(v)) })
	case *array.Int8Builder:
		return whole(dt, math.MinInt8, math.MaxInt8, func(v int64) { b.Append(int8(v)) })
	case *array.Uint64Builder:
		return whole(dt, 0, math.MaxInt64, func(v int64) { b.Append(uint64(v)) })
	case *array.Uint32Builder:
		return whole(dt, 0, math.MaxUint32, func(v int64) { b.Append(uint32(v)) })
	case *array.Uint16Builder:
		return whole(dt, 0, math.MaxUint16, func(v int64) { b.Append(uint16(v)) })
	case *array.Uint8Builder:
		return whole(dt, 0, math.MaxUint8, func(v int64) { b.Append(uint8(v)) })
	case *array.Date32Builder:
		return whole(dt, math.MinInt32, math.MaxInt32, func(v int64) { b.Append(arrow.Date32(v)) })
	case *array.TimestampBuilder:
		return whole(dt, math.MinInt64, math.MaxInt64, func(v int64) { b.Append(arrow.Timestamp(v)) })
	case *array.FixedSizeListBuilder:
		return vectors(dt, func() { b.Append(true) }, b.ValueBuilder(), batch.VectorDim(dt))
	case *array.ListBuilder:
		return vectors(dt, func() { b.Append(true) }, b.ValueBuilder(), 0)
	case *array.StructBuilder:
		return sparse(b, dt)
	}
	return func(c *Cell) error { return mismatch(c, dt) }
}

func mismatch(c *Cell, dt arrow.DataType) error {
	return fmt.Errorf("%s is no %s", c.Kind, batch.TypeName(dt))
}

func numbers(dt arrow.DataType, put func(v float64) bool) func(c *Cell) error {
	return func(c *Cell) error {
		v, ok := c.Number()
		if !ok || !put(v) {
			return mismatch(c, dt)
		}
		return nil
	}
}

// whole returns a function that appends the value of an integer cell, or of a float cell whose
// value is an integer. For a value outside least..most, the function returns an error.
func whole(dt arrow.DataType, least, most int64, put func(v int64)) func(c *Cell) error {
	return func(c *Cell) error {
		v := c.Int
		switch {
		case c.Kind == IntCell:
		case c.Kind == FloatCell && c.Float == math.Trunc(c.Float) && math.Abs(c.Float) < 1<<63:
			v = int64(c.Float)
		default:
			return mismatch(c, dt)
		}
		if v < least || v > most {
			return fmt.Errorf("%d is beyond the range of %s", v, batch.TypeName(dt))
		}
		put(v)
		return nil
	}
}

// vectors returns a function that appends dense vectors of dim components, or of any number of
// components if dim is 0.
func vectors(dt arrow.DataType, open func(), items array.Builder, dim int) func(c *Cell) error {
	return func(c *Cell) error {
		if c.Kind != DenseCell {
			return mismatch(c, dt)
		}
		if dim != 0 && len(c.Values) != dim {
			return fmt.Errorf("a vector of %d components is no %s", len(c.Values), batch.TypeName(dt))
		}
		open()
		switch to := items.(type) {
		case *array.Float64Builder:
			to.AppendValues(c.Values, nil)
		case *array.Float32Builder:
			for _, v := range c.Values {
				to.Append(float32(v))
			}
		}
		return nil
	}
}

// sparse returns a function that appends sparse vectors. The indices must ascend and be below
// the size in the type dt.
func sparse(b *array.StructBuilder, dt arrow.DataType) func(c *Cell) error {
	size := batch.VectorDim(dt)
	indices, values := b.FieldBuilder(0).(*array.ListBuilder), b.FieldBuilder(1).(*array.ListBuilder)
	col, val := indices.ValueBuilder().(*array.Int32Builder), values.ValueBuilder().(*array.Float64Builder)
	return func(c *Cell) error {
		if c.Kind != SparseCell {
			return mismatch(c, dt)
		}
		v := batch.SparseVector{Size: max(size, c.Size), Indices: c.Indices, Values: c.Values}
		if size != 0 {
			v.Size = size
		}
		if err := v.Validate(); err != nil {
			return err
		}
		b.Append(true)
		indices.Append(true)
		col.AppendValues(c.Indices, nil)
		values.Append(true)
		val.AppendValues(c.Values, nil)
		return nil
	}
}
