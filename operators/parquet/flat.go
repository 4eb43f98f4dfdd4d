package parquet

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
)

// flatColumn reads a column that has no lists.
type flatColumn interface {
	// read returns an array of the next rows; the parameter rows is their number. At least that
	// many rows must be left. The caller owns the result.
	read(rows int) (arrow.Array, error)
}

// newFlat returns a reader of a column of the given stored type.
func newFlat(l leaf, stored arrow.DataType) (flatColumn, error) {
	f := flat{leaf: l, stored: stored}
	switch l.column.PhysicalType() {
	case pq.Types.Boolean:
		return newTruthColumn(f), nil
	case pq.Types.Int32:
		return newNumberColumn[int32](f, false), nil
	case pq.Types.Int64:
		return newNumberColumn[int64](f, false), nil
	case pq.Types.Int96:
		return newNumberColumn[int64](f, true), nil
	case pq.Types.Float:
		return newNumberColumn[float32](f, false), nil
	case pq.Types.Double:
		return newNumberColumn[float64](f, false), nil
	case pq.Types.ByteArray:
		return newTextColumn(f), nil
	}
	return nil, fmt.Errorf("type %v is not supported", l.column.PhysicalType())
}

// flat has the fields that all columns without lists have in common.
type flat struct {
	leaf
	stored arrow.DataType
}

// part describes those rows of one call of read that are in the same page.
type part struct {
	from, to int    // range of indices within the rows of the call
	held     int    // number of rows that are not null
	valid    []byte // validity bits of all rows of the call; nil if the column has no nulls
}

// rows reads which of the next rows are null. For each page with some of these rows, it calls
// values, which must read the values that are not null.
func (f *flat) rows(rows int, values func(p part) error) (valid *memory.Buffer, nulls int, err error) {
	all := part{}
	if f.column.MaxDefinitionLevel() > 0 {
		all.valid = make([]byte, bitutil.BytesForBits(int64(rows)))
		valid = memory.NewBufferBytes(all.valid)
	}
	for at := 0; at < rows; {
		if more, err := f.next(); err != nil {
			return nil, 0, err
		} else if !more {
			return nil, 0, errors.New("it ends before its last row")
		}
		n := min(rows-at, f.here)
		p := part{from: at, to: at + n, held: n, valid: all.valid}
		if p.valid != nil {
			if p.held, err = f.defined.bits(p.valid, at, n); err != nil {
				return nil, 0, f.inPage(err)
			}
		}
		if err := values(p); err != nil {
			return nil, 0, f.inPage(err)
		}
		f.here, at, nulls = f.here-n, p.to, nulls+n-p.held
	}
	return valid, nulls, nil
}

func (f *flat) array(rows, nulls int, buffers ...*memory.Buffer) arrow.Array {
	data := array.NewData(f.stored, rows, buffers, nil, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// numberColumn reads numbers, dates and times.
type numberColumn[T number] struct {
	flat
	numbers numbers[T]
}

func newNumberColumn[T number](f flat, times96 bool) *numberColumn[T] {
	c := &numberColumn[T]{flat: f, numbers: numbers[T]{times96: times96}}
	c.values = &c.numbers
	return c
}

func (c *numberColumn[T]) read(rows int) (arrow.Array, error) {
	out := make([]T, rows)
	valid, nulls, err := c.rows(rows, func(p part) error {
		if p.held == 0 {
			return nil
		}
		// The values that are not null are read into the first elements of the part. They are
		// then moved to the elements of their rows, beginning with the last value.
		if err := c.numbers.next(out[p.from : p.from+p.held]); err != nil {
			return err
		}
		for i, from := p.to-1, p.from+p.held; from <= i; i-- {
			out[i] = 0
			if bitutil.BitIsSet(p.valid, i) {
				from--
				out[i] = out[from]
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.array(rows, nulls, valid, memory.NewBufferBytes(bytesOf(out, c.stored))), nil
}

// bytesOf returns the bytes of numbers as values of type t, which may have fewer bits.
func bytesOf[T number](numbers []T, t arrow.DataType) []byte {
	switch t.(arrow.FixedWidthDataType).BitWidth() {
	case 8:
		return narrowed[int8](numbers)
	case 16:
		return narrowed[int16](numbers)
	}
	return arrow.GetBytes(numbers)
}

func narrowed[To int8 | int16, T number](numbers []T) []byte {
	out := make([]To, len(numbers))
	for i, v := range numbers {
		out[i] = To(v)
	}
	return arrow.GetBytes(out)
}

// textColumn reads texts and bytes.
type textColumn struct {
	flat
	texts texts
	bytes int // number of bytes of the texts of the previous call of read
}

func newTextColumn(f flat) *textColumn {
	c := &textColumn{flat: f}
	c.values = &c.texts
	return c
}

func (c *textColumn) read(rows int) (arrow.Array, error) {
	ends := make([]int32, rows+1)
	c.texts.data = make([]byte, 0, c.bytes+c.bytes/8)
	valid, nulls, err := c.rows(rows, func(p part) error {
		ends := ends[p.from : p.to+1]
		if p.held > 0 {
			if err := c.texts.next(ends[1 : p.held+1]); err != nil {
				return err
			}
		}
		// The text of a null row is empty: it ends where the text of the previous row ends.
		for i, from := p.to-p.from, p.held; from < i; i-- {
			ends[i] = ends[from]
			if bitutil.BitIsSet(p.valid, p.from+i-1) {
				from--
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.bytes = len(c.texts.data)
	return c.array(rows, nulls, valid, memory.NewBufferBytes(arrow.GetBytes(ends)), memory.NewBufferBytes(c.texts.data)), nil
}

// truthColumn reads booleans.
type truthColumn struct {
	flat
	truths truths
}

func newTruthColumn(f flat) *truthColumn {
	c := &truthColumn{flat: f}
	c.values = &c.truths
	return c
}

func (c *truthColumn) read(rows int) (arrow.Array, error) {
	out := make([]byte, bitutil.BytesForBits(int64(rows)))
	valid, nulls, err := c.rows(rows, func(p part) error {
		if _, err := c.truths.bits(out, p.from, p.held); err == errRunsEnd {
			return fewValues(p.held)
		} else if err != nil {
			return err
		}
		for i, from := p.to-1, p.from+p.held; from <= i; i-- {
			value := false
			if bitutil.BitIsSet(p.valid, i) {
				from--
				value = bitutil.BitIsSet(out, from)
			}
			bitutil.SetBitTo(out, i, value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.array(rows, nulls, valid, memory.NewBufferBytes(out)), nil
}
