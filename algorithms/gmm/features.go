package gmm

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// features are the columns that hold the features of a row: one vector, or numbers and
// vectors that follow each other.
type features struct{ inputs []model.Input }

// featuresOf returns the columns that training read, with the number of features where the
// type of a vector does not tell it.
func featuresOf(t rows.Table, columns []string, schema *arrow.Schema, dim int) features {
	if len(columns) == 0 {
		columns = []string{t.Vector()}
	}
	f := features{}
	for _, name := range columns {
		i, _ := batch.FindColumn(schema, name) // rows.Check found it
		dt := schema.Field(i).Type
		text := batch.TypeName(dt)
		if batch.IsVector(dt) && batch.VectorDim(dt) == 0 {
			text = fmt.Sprintf("%s[%d]", text, dim)
		}
		f.inputs = append(f.inputs, model.Input{Column: name, Type: text})
	}
	return f
}

// check tells what does not hold together, given the number of features.
func (f features) check(dim int) error {
	d := 0
	for _, in := range f.inputs {
		dt, err := batch.ParseType(in.Type)
		switch {
		case err != nil:
			return fmt.Errorf("input %q: %w", in.Column, err)
		case batch.IsVector(dt):
			d += batch.VectorDim(dt)
		case arrow.IsInteger(dt.ID()), arrow.IsFloating(dt.ID()):
			d++
		default:
			return fmt.Errorf("input %q is %s: want a number or a vector", in.Column, in.Type)
		}
	}
	if d != dim || d == 0 {
		return fmt.Errorf("the inputs have %d features, dim is %d", d, dim)
	}
	return nil
}

// point is the features of a row: dense, or, with indices that are not nil, the entries
// that are not 0.
type point struct {
	indices []int32
	values  []float64
}

// reader reads points from the cells of rows.
type reader struct {
	names  []string
	cells  []int
	joined int // cell of the components of several columns, -1 for one vector
	dim    int
}

// bind finds the columns in a layout; vector and columns, where they are given, are read
// in place of those of training.
func (f features) bind(l *model.Layout, vector string, columns []string, dim int) (*reader, error) {
	r := &reader{names: columns, joined: -1, dim: dim}
	if vector != "" {
		r.names = []string{vector}
	}
	if len(r.names) == 0 {
		for _, in := range f.inputs {
			r.names = append(r.names, in.Column)
		}
	}
	for _, name := range r.names {
		cell, err := l.Find(name)
		if err != nil {
			return nil, fmt.Errorf("features: %w", err)
		}
		r.cells = append(r.cells, cell)
	}
	if len(columns) > 0 || vector == "" && (len(f.inputs) > 1 || f.inputs[0].Type[0] != 'v' && f.inputs[0].Type[0] != 's') {
		r.joined = l.Add("")
	}
	return r, nil
}

// errNonFinite says what of a row cannot be used; see PredictOptions.Skip.
type errNonFinite struct{ what string }

func (e errNonFinite) Error() string { return e.what }

// read returns the features of a row, which are views of its cells. A row with a null has
// none, which is told by ok. The error names the column.
func (r *reader) read(row []model.Cell) (p point, ok bool, err error) {
	for _, cell := range r.cells {
		if row[cell].Kind == model.NullCell {
			return point{}, false, nil
		}
	}
	if r.joined >= 0 {
		return r.join(row)
	}
	c := &row[r.cells[0]]
	switch c.Kind {
	case model.DenseCell:
		if len(c.Values) != r.dim {
			return point{}, false, fmt.Errorf("column %q has %d components, the model was trained on %d", r.names[0], len(c.Values), r.dim)
		}
		for j, v := range c.Values {
			if !finite(v) {
				return point{}, false, errNonFinite{fmt.Sprintf("column %q: component %d is %v", r.names[0], j, v)}
			}
		}
		return point{values: c.Values}, true, nil
	case model.SparseCell:
		if c.Size != 0 && c.Size != r.dim {
			return point{}, false, fmt.Errorf("column %q has %d components, the model was trained on %d", r.names[0], c.Size, r.dim)
		}
		if !ascending(c.Indices, r.dim) || len(c.Indices) != len(c.Values) {
			return point{}, false, fmt.Errorf("column %q: the indices do not ascend within the %d features of the model", r.names[0], r.dim)
		}
		for q, v := range c.Values {
			if !finite(v) {
				return point{}, false, errNonFinite{fmt.Sprintf("column %q: component %d is %v", r.names[0], c.Indices[q], v)}
			}
		}
		return sparsePoint(c.Indices, c.Values), true, nil
	}
	return point{}, false, fmt.Errorf("column %q is %s, the model reads a vector of %d", r.names[0], c.Kind, r.dim)
}

// join reads several columns one behind the other.
func (r *reader) join(row []model.Cell) (p point, ok bool, err error) {
	x := row[r.joined].MakeDense(r.dim)
	at := 0
	for q, cell := range r.cells {
		c := &row[cell]
		var one [1]float64
		values := one[:]
		switch v, number := c.Number(); {
		case number:
			one[0] = v
		case c.Kind == model.DenseCell:
			values = c.Values
		default:
			return point{}, false, fmt.Errorf("column %q is %s, not a number", r.names[q], c.Kind)
		}
		for _, v := range values {
			if !finite(v) {
				return point{}, false, errNonFinite{fmt.Sprintf("column %q is %v", r.names[q], v)}
			}
			if at < r.dim {
				x[at] = v
			}
			at++
		}
	}
	if at != r.dim {
		return point{}, false, fmt.Errorf("the columns have %d components, the model was trained on %d", at, r.dim)
	}
	return point{values: x}, true, nil
}

// sparsePoint returns a point of the given entries.
func sparsePoint(indices []int32, values []float64) point {
	if indices == nil {
		indices = noIndices
	}
	return point{indices, values}
}

var noIndices = []int32{}

// ascending tells whether indices ascend from 0 to below dim.
func ascending(indices []int32, dim int) bool {
	last := int32(-1)
	for _, j := range indices {
		if j <= last || int(j) >= dim {
			return false
		}
		last = j
	}
	return true
}
