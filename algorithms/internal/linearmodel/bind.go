package linearmodel

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// Binding reads the margins of rows of cells. Any number of goroutines may use one.
type Binding struct {
	m      *Model
	vector bool
	cells  []int
	offset int // -1: none
}

// Bind finds the columns that the model reads in a layout.
func (m *Model) Bind(l *model.Layout) (*Binding, error) {
	m.prepare()
	b := &Binding{m: m, vector: m.vector() != "", offset: -1}
	for _, in := range m.Reads {
		cell, err := l.Find(in.Column)
		if err != nil {
			return nil, err
		}
		b.cells = append(b.cells, cell)
	}
	if m.OffsetCol != "" {
		cell, err := l.Find(m.OffsetCol)
		if err != nil {
			return nil, err
		}
		b.offset = cell
	}
	return b, nil
}

// BindNumber returns the step of a model that predicts a number of its one margin, in a
// column that it adds.
func BindNumber(m *Model, l *model.Layout, column string, of func(margin float64) float64) (model.Step, error) {
	in, err := m.Bind(l)
	if err != nil {
		return nil, err
	}
	to := l.Add(column)
	return func(row []model.Cell) error {
		var one [1]float64
		switch ok, err := in.MarginsTo(row, one[:]); {
		case err != nil:
			return err
		case !ok:
			row[to].SetNull()
		default:
			row[to].SetFloat(of(one[0]))
		}
		return nil
	}, nil
}

// BindClass returns the step of a classifier, which adds a column of the class and one of a
// vector. That has size values: of finds the row's margins at their head, returns the class,
// −1 for none, and leaves there what the column is to have.
func BindClass(m *Model, l *model.Layout, c Classes, column, vector string, size int, of func(dst []float64) int) (model.Step, error) {
	in, err := m.Bind(l)
	if err != nil {
		return nil, err
	}
	set, err := c.Setter()
	if err != nil {
		return nil, err
	}
	class, values := l.Add(column), l.Add(vector)
	return func(row []model.Cell) error {
		dst := row[values].MakeDense(size)
		switch ok, err := in.MarginsTo(row, dst[:m.Margins()]); {
		case err != nil:
			return err
		case !ok:
			row[class].SetNull()
			row[values].SetNull()
		default:
			set(&row[class], of(dst))
		}
		return nil
	}, nil
}

// MarginsTo writes the margins of a row to dst, which has one for each, with the offset
// added to the first. It reports false for a row with a null among what is read. It
// allocates nothing. The error names the column.
func (b *Binding) MarginsTo(row []model.Cell, dst []float64) (ok bool, err error) {
	var offset float64
	if b.offset >= 0 {
		cell := &row[b.offset]
		if cell.Kind == model.NullCell {
			return false, nil
		}
		v, number := cell.Number()
		if !number || !finite(v) {
			return false, fmt.Errorf("column %q: the offset is %v %v, not a number", b.m.OffsetCol, cell.Kind, v)
		}
		offset = v
	}
	if b.vector {
		ok, err = b.vectorMargins(&row[b.cells[0]], dst)
	} else {
		ok, err = b.joinedMargins(row, dst)
	}
	if ok && b.offset >= 0 {
		dst[0] += offset
	}
	return ok, err
}

// vectorMargins takes a row that is one vector.
func (b *Binding) vectorMargins(cell *model.Cell, dst []float64) (bool, error) {
	m, name := b.m, b.m.Reads[0].Column
	switch cell.Kind {
	case model.NullCell:
		return false, nil
	case model.DenseCell:
		if len(cell.Values) != m.Dim {
			return false, fmt.Errorf("column %q has %d components, the model was trained on %d", name, len(cell.Values), m.Dim)
		}
		m.MarginsTo(cell.Values, dst)
	case model.SparseCell:
		if cell.Size != 0 && cell.Size != m.Dim {
			return false, fmt.Errorf("column %q has %d components, the model was trained on %d", name, cell.Size, m.Dim)
		}
		if problem := m.badSparse(cell.Indices, cell.Values); problem != "" {
			return false, fmt.Errorf("column %q %s", name, problem)
		}
		m.SparseMarginsTo(cell.Indices, cell.Values, dst)
	default:
		return false, fmt.Errorf("column %q is %s, the model reads a vector of %d", name, cell.Kind, m.Dim)
	}
	for j, v := range cell.Values {
		if !finite(v) {
			return false, fmt.Errorf("column %q: component %d is %v", name, j, v)
		}
	}
	return true, nil
}

// joinedMargins takes a row of several cells, in the order of the features.
func (b *Binding) joinedMargins(row []model.Cell, dst []float64) (bool, error) {
	clear(dst)
	at := 0
	for q, c := range b.cells {
		cell := &row[c]
		var one [1]float64
		values := one[:]
		switch v, number := cell.Number(); {
		case cell.Kind == model.NullCell:
			return false, nil
		case number:
			one[0] = v
		case cell.Kind == model.DenseCell:
			values = cell.Values
		default:
			return false, fmt.Errorf("column %q is %s, not a number", b.m.Reads[q].Column, cell.Kind)
		}
		if at+len(values) > b.m.Dim {
			return false, fmt.Errorf("column %q: there are more components than the %d features of the model", b.m.Reads[q].Column, b.m.Dim)
		}
		for _, v := range values {
			if !finite(v) {
				return false, fmt.Errorf("column %q is %v", b.m.Reads[q].Column, v)
			}
			for a, own := range b.m.Coefficients {
				dst[a] += float64(v * own[at])
			}
			at++
		}
	}
	if at != b.m.Dim {
		return false, fmt.Errorf("the columns have %d components, the model was trained on %d features", at, b.m.Dim)
	}
	for a, intercept := range b.m.Intercepts {
		dst[a] += intercept
	}
	return true, nil
}
