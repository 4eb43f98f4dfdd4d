package model

import (
	"fmt"
	"strconv"
)

// CellKind says what a cell holds.
type CellKind uint8

// The kinds of cells.
const (
	NullCell   CellKind = iota
	BoolCell            // Int is 0 or 1
	IntCell             // Int
	FloatCell           // Float
	TextCell            // Text
	DenseCell           // Values
	SparseCell          // Indices, which ascend, and Values; Size, 0 where it is open
)

var cellKinds = []string{"null", "a bool", "an integer", "a number", "text", "a vector", "a sparse vector"}

// String returns the name of the kind in messages, such as "text".
func (k CellKind) String() string {
	if int(k) < len(cellKinds) {
		return cellKinds[k]
	}
	return fmt.Sprintf("CellKind(%d)", k)
}

// Cell is a value of a row. Callers read its fields and change it by its methods, which reuse
// its memory. So a row that is used again and again allocates nothing once its vectors have had
// their largest length. Text and vectors that a caller sets are borrowed until the cell is set
// again; those that a step made are valid until it runs again.
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

// SetNull makes the cell null.
func (c *Cell) SetNull() { c.Kind = NullCell }

// SetBool makes it a bool.
func (c *Cell) SetBool(v bool) {
	c.Kind, c.Int = BoolCell, 0
	if v {
		c.Int = 1
	}
}

// SetInt makes it an integer.
func (c *Cell) SetInt(v int64) { c.Kind, c.Int = IntCell, v }

// SetFloat makes it a number.
func (c *Cell) SetFloat(v float64) { c.Kind, c.Float = FloatCell, v }

// SetText makes it text.
func (c *Cell) SetText(v string) { c.Kind, c.Text = TextCell, v }

// SetDense makes it a vector, which is borrowed.
func (c *Cell) SetDense(values []float64) { c.Kind, c.Values = DenseCell, values }

// SetSparse makes it a sparse vector, which is borrowed: as many indices as values, and indices
// that ascend within 0 to size-1. Size 0 leaves the size open. SetSparse does not check this:
// see CheckSparse.
func (c *Cell) SetSparse(size int, indices []int32, values []float64) {
	c.Kind, c.Size, c.Indices, c.Values = SparseCell, size, indices, values
}

// MakeDense makes it a vector in memory of its own and returns the n values for the caller to
// fill. They are not cleared.
func (c *Cell) MakeDense(n int) []float64 {
	if cap(c.values) < n {
		c.values = make([]float64, n)
	}
	c.SetDense(c.values[:n])
	return c.Values
}

// MakeSparse makes it a sparse vector with n entries in memory of its own and returns these for
// the caller to fill. They are not cleared.
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

// Number returns the value of a bool, integer or number. ok is false for other kinds.
func (c *Cell) Number() (v float64, ok bool) {
	switch c.Kind {
	case FloatCell:
		return c.Float, true
	case BoolCell, IntCell:
		return float64(c.Int), true
	}
	return 0, false
}

// Category returns the value of a cell that is no vector as text: text as it is, bools as true
// and false, integers in decimal, and numbers as the shortest decimal that reads back the same,
// with -0 as 0. Cells with the same text are of the same category. The bytes are valid until
// the cell is used again. ok is false for nulls and vectors.
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
