package model

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Reader reads rows of batches into cells. A date becomes the number of days since 1970, and a
// timestamp becomes the number of microseconds since 1970. An integer above 2^63-1 becomes the
// nearest float64. Only one goroutine at a time may use a Reader.
type Reader struct {
	cells   []int // cells to fill
	columns []int // columns[i] is the index of the batch's column for cells[i]
	get     []func(row int, c *Cell)
}

// NewReader returns a reader that fills cells of a layout from columns of the schema. The first
// cells of the layout must be the columns of the schema, in order. The reader fills only cells
// that are read by a model that is bound to the layout. NewReader returns an error if such a
// column has a type that a cell cannot hold.
func NewReader(schema engine.Schema, l *Layout) (*Reader, error) {
	r := &Reader{}
	for i, f := range schema.Columns() {
		if !l.Reads(i) {
			continue
		}
		if err := CheckCell(f); err != nil {
			return nil, err
		}
		r.cells, r.columns = append(r.cells, i), append(r.columns, i)
	}
	r.get = make([]func(int, *Cell), len(r.cells))
	return r, nil
}

// CheckCell returns an error if a cell cannot hold the values of a column.
func CheckCell(column engine.Column) error {
	dt, err := batch.ParseType(column.Type)
	if err != nil {
		return fmt.Errorf("column %q: %w", column.Name, err)
	}
	if id := dt.ID(); batch.IsNumber(dt) || id == arrow.STRING || id == arrow.DATE32 || id == arrow.TIMESTAMP || batch.IsVector(dt) {
		return nil
	}
	return fmt.Errorf("column %q is %s: want numbers, bools, text, dates or vectors", column.Name, column.Type)
}

// Reset sets the batch from which Read reads. The batch is borrowed until the next Reset.
func (r *Reader) Reset(in engine.Batch) {
	rows := arrowrows.Record(in)
	for i, column := range r.columns {
		r.get[i] = getter(rows.Column(column))
	}
}

// Read fills the cells of a row. Text and vectors in cells refer to the batch's memory.
func (r *Reader) Read(row int, cells []Cell) {
	for i, get := range r.get {
		get(row, &cells[r.cells[i]])
	}
}

// getter returns a function that reads a value of a column into a cell.
func getter(column arrow.Array) func(row int, c *Cell) {
	get := valueGetter(column)
	if column.NullN() == 0 {
		return get
	}
	return func(row int, c *Cell) {
		if column.IsNull(row) {
			c.SetNull()
			return
		}
		get(row, c)
	}
}

func valueGetter(column arrow.Array) func(row int, c *Cell) {
	switch a := column.(type) {
	case *array.Boolean:
		return func(row int, c *Cell) { c.SetBool(a.Value(row)) }
	case *array.Int8:
		return integers(a.Int8Values())
	case *array.Int16:
		return integers(a.Int16Values())
	case *array.Int32:
		return integers(a.Int32Values())
	case *array.Int64:
		return integers(a.Int64Values())
	case *array.Uint8:
		return integers(a.Uint8Values())
	case *array.Uint16:
		return integers(a.Uint16Values())
	case *array.Uint32:
		return integers(a.Uint32Values())
	case *array.Uint64:
		return func(row int, c *Cell) {
			if v := a.Value(row); v > math.MaxInt64 {
				c.SetFloat(float64(v))
			} else {
				c.SetInt(int64(v))
			}
		}
	case *array.Date32:
		return integers(a.Date32Values())
	case *array.Timestamp:
		return integers(a.TimestampValues())
	case *array.Float32:
		return func(row int, c *Cell) { c.SetFloat(float64(a.Value(row))) }
	case *array.Float64:
		return func(row int, c *Cell) { c.SetFloat(a.Value(row)) }
	case *array.String:
		return func(row int, c *Cell) { c.SetText(a.Value(row)) }
	}
	return vectorGetter(column)
}

func integers[T ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32](values []T) func(row int, c *Cell) {
	return func(row int, c *Cell) { c.SetInt(int64(values[row])) }
}

// vectorGetter returns a function that reads a vector of a column into a cell.
func vectorGetter(column arrow.Array) func(row int, c *Cell) {
	switch a := column.(type) {
	case *array.FixedSizeList:
		d, offset := int(a.DataType().(*arrow.FixedSizeListType).Len()), a.Offset()
		return items(a.ListValues(), func(row int) (int, int) { return (offset + row) * d, (offset + row + 1) * d })
	case *array.List:
		return items(a.ListValues(), func(row int) (int, int) {
			lo, hi := a.ValueOffsets(row)
			return int(lo), int(hi)
		})
	case *array.Struct:
		size := batch.VectorDim(a.DataType())
		indices, values := a.Field(0).(*array.List), a.Field(1).(*array.List)
		col, val := indices.ListValues().(*array.Int32).Int32Values(), values.ListValues().(*array.Float64).Float64Values()
		return func(row int, c *Cell) {
			lo, hi := indices.ValueOffsets(row)
			from, to := values.ValueOffsets(row)
			c.SetSparse(size, col[lo:hi], val[from:to])
		}
	}
	return func(_ int, c *Cell) { c.SetNull() } // not reached: NewReader returned an error for all other types
}

func items(values arrow.Array, bounds func(row int) (int, int)) func(row int, c *Cell) {
	if v, ok := values.(*array.Float32); ok {
		data := v.Float32Values()
		return func(row int, c *Cell) {
			lo, hi := bounds(row)
			to := c.MakeDense(hi - lo)
			for i, x := range data[lo:hi] {
				to[i] = float64(x)
			}
		}
	}
	data := values.(*array.Float64).Float64Values()
	return func(row int, c *Cell) {
		lo, hi := bounds(row)
		c.SetDense(data[lo:hi])
	}
}
