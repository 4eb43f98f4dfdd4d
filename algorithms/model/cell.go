package model

import (
	"fmt"
	"strconv"
)

// CellKind is the kind of value that a cell holds.
type CellKind uint8

// These are the kinds of cells.
const (
	NullCell   CellKind = iota
	BoolCell            // the value is in Int, as 0 or 1
	IntCell             // the value is in Int
	FloatCell           // the value is in Float
	TextCell            // the value is in Text
	DenseCell           // the components are in Values
	SparseCell          // the entries are in Indices, which ascend, and Values; Size is the declared size, or 0
)

var cellKinds = []string{"null", "a bool", "an integer", "a number", "text", "a vector", "a sparse vector"}

// String returns the name of the kind in messages, such as "text".
func (k CellKind) String() string {
	if int(k) < len(cellKinds) {
		return cellKinds[k]
	}
	return fmt.Sprintf("CellKind(%d)", k)
}

// Cell is a value of a row. Callers read its fields, and change it only by its methods, which
// reuse its memory. So a row that is used repeatedly allocates memory only when a vector is
// longer than all earlier vectors of its cell. Text and vectors that a caller sets are borrowed
// until the cell is set again. Text and vectors that a Step has set are valid until the Step
// runs on the row again.
type Cell struct {
	Kind    CellKind
	Int     int64
	Float   float64
	Text    string
	Values  []float64
	Indices []int32
	Size    int

	values  []float64
	indices []int32
	text    []byte
}

// SetNull sets the cell to null.
func (c *Cell) SetNull() { c.Kind = NullCell }

// SetBool sets the cell to a bool.
func (c *Cell) SetBool(v bool) {
	c.Kind, c.Int = BoolCell, 0
	if v {
		c.Int = 1
	}
}

// SetInt sets the cell to an integer.
func (c *Cell) SetInt(v int64) { c.Kind, c.Int = IntCell, v }

// SetFloat sets the cell to a float.
func (c *Cell) SetFloat(v float64) { c.Kind, c.Float = FloatCell, v }

// SetText sets the cell to a text.
func (c *Cell) SetText(v string) { c.Kind, c.Text = TextCell, v }

// SetDense sets the cell to a dense vector, which is borrowed.
func (c *Cell) SetDense(values []float64) { c.Kind, c.Values = DenseCell, values }

// SetSparse sets the cell to a sparse vector, which is borrowed. There must be as many indices
// as values, and the indices must ascend and be in 0..size-1. If size is 0, the vector declares
// no size. SetSparse does not check this; CheckSparse does.
func (c *Cell) SetSparse(size int, indices []int32, values []float64) {
	c.Kind, c.Size, c.Indices, c.Values = SparseCell, size, indices, values
}

// MakeDense sets the cell to a dense vector in memory of the cell, and returns its n values,
// which the caller must set. They have arbitrary contents.
func (c *Cell) MakeDense(n int) []float64 {
	if cap(c.values) < n {
		c.values = make([]float64, n)
	}
	c.SetDense(c.values[:n])
	return c.Values
}

// MakeSparse sets the cell to a sparse vector with n entries in memory of the cell, and returns
// the entries, which the caller must set. They have arbitrary contents.
func (c *Cell) MakeSparse(size, n int) (indices []int32, values []float64) {
	if cap(c.values) < n {
		c.values = make([]float64, n)
	}
	if cap(c.indices) < n {
		c.indices = make([]int32, n)
	}
	c.SetSparse(size, c.indices[:n], c.values[:n])
	return c.Indices, c.Values
}

// Number returns the value of a bool, an integer or a float as float64. ok is false for other
// kinds.
func (c *Cell) Number() (v float64, ok bool) {
	switch c.Kind {
	case FloatCell:
		return c.Float, true
	case BoolCell, IntCell:
		return float64(c.Int), true
	}
	return 0, false
}

// Category returns the value of a cell as text: text unchanged, bools as true and false,
// integers in decimal, and floats as the shortest decimal that parses to the same value, with
// -0 as 0. Cells with the same text have the same category. The bytes are valid until the cell
// is used again. ok is false for nulls and vectors.
func (c *Cell) Category() (text []byte, ok bool) {
	b := c.text[:0]
	switch c.Kind {
	case TextCell:
		b = append(b, c.Text...)
	case BoolCell:
		b = strconv.AppendBool(b, c.Int != 0)
	case IntCell:
		b = strconv.AppendInt(b, c.Int, 10)
	case FloatCell:
		b = strconv.AppendFloat(b, c.Float+0, 'g', -1, 64)
	default:
		return nil, false
	}
	c.text = b
	return b, true
}
