package gmm

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// features are the columns that hold the components of a point: one vector, or numbers and
// vectors that follow each other.
type features struct{ inputs []model.Input }

// featuresOf returns the columns that training reads.
func featuresOf(t rows.Table, columns []string, schema *arrow.Schema) features {
	if len(columns) == 0 {
		columns = []string{t.Vector()}
	}
	f := features{}
	for _, name := range columns {
		i, _ := batch.FindColumn(schema, name) // rows.Check found it
		f.inputs = append(f.inputs, model.Input{Column: name, Type: batch.TypeName(schema.Field(i).Type)})
	}
	return f
}

// complete notes how many components a lone vector has, where its type does not say.
func (f *features) complete(d int) {
	if dt, err := batch.ParseType(f.inputs[0].Type); len(f.inputs) == 1 && err == nil && batch.IsVector(dt) && batch.VectorDim(dt) == 0 {
		f.inputs = []model.Input{{Column: f.inputs[0].Column, Type: fmt.Sprintf("%s[%d]", f.inputs[0].Type, d)}}
	}
}

// dim returns the components of all columns, and what is wrong with their types.
func (f features) dim() (int, error) {
	d := 0
	for _, in := range f.inputs {
		dt, err := batch.ParseType(in.Type)
		switch {
		case err != nil:
			return 0, fmt.Errorf("input %q: %w", in.Column, err)
		case batch.IsVector(dt):
			d += batch.VectorDim(dt)
		case arrow.IsInteger(dt.ID()), arrow.IsFloating(dt.ID()):
			d++
		default:
			return 0, fmt.Errorf("input %q is %s: want a number or a vector", in.Column, in.Type)
		}
	}
	return d, nil
}

// bound reads the components of a point from the cells of a row.
type bound struct {
	features
	cells []int
	d     int
}

// bind finds the columns in a layout; vector, if not empty, names the vector column in
// place of that of training.
func (f features) bind(l *model.Layout, vector string, d int) (bound, error) {
	if vector != "" {
		f.inputs = []model.Input{{Column: vector, Type: "vector"}}
	}
	b := bound{features: f, d: d}
	for _, in := range f.inputs {
		cell, err := l.Find(in.Column)
		if err != nil {
			return bound{}, err
		}
		b.cells = append(b.cells, cell)
	}
	return b, nil
}

// read returns the components of a row's point: the row's own, or x filled. The error names
// the column, and wraps errUnusable where a value is null, NaN or infinite.
func (b bound) read(row []model.Cell, x []float64) ([]float64, error) {
	at := 0
	for i, cell := range b.cells {
		c := &row[cell]
		name := b.inputs[i].Column
		var values []float64
		if v, ok := c.Number(); ok {
			if at < b.d {
				x[at] = v
			}
			values = x[min(at, b.d):min(at+1, b.d)]
			at++
		} else if c.Kind == model.DenseCell {
			values = c.Values
			if len(b.cells) == 1 {
				x = values
			} else if at+len(values) <= b.d {
				copy(x[at:], values)
			}
			at += len(values)
		} else if c.Kind == model.NullCell {
			return nil, fmt.Errorf("column %q is null%w", name, errUnusable)
		} else {
			return nil, fmt.Errorf("column %q is %s: want numbers or a vector", name, c.Kind)
		}
		for j, v := range values {
			if !finite(v) {
				if len(values) == 1 {
					return nil, fmt.Errorf("column %q is %v%w", name, v, errUnusable)
				}
				return nil, fmt.Errorf("column %q: component %d is %v%w", name, j, v, errUnusable)
			}
		}
	}
	if at != b.d {
		return nil, fmt.Errorf("column %q: the row has %d components, the model was trained on %d", b.inputs[0].Column, at, b.d)
	}
	return x, nil
}
