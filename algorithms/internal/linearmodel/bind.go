package linearmodel

import (
	"cmp"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// binding computes the margins of rows of cells. Any number of goroutines may use it.
type binding struct {
	m      *Model
	in     *signature.Reader
	offset int // index of the cell of the offset; −1 if there is no offset
}

// bind finds the columns that the model reads in a layout.
func (m *Model) bind(l *model.Layout) (*binding, error) {
	m.prepare()
	in, err := signature.Inputs(m.Reads).Bind(l, model.PredictOptions{}, m.Dim)
	if err != nil {
		return nil, err
	}
	b := &binding{m: m, in: in, offset: -1}
	if m.OffsetCol != "" {
		b.offset, err = l.Find(m.OffsetCol)
	}
	return b, err
}

// BindNumber returns the step of a model that predicts a number from its only margin. The step
// adds a column whose name is the parameter column; an empty name means Prediction. The
// prediction for a row is of(m, margin).
func BindNumber[M estimated](m M, l *model.Layout, column string, of func(m M, margin float64) float64) (model.Step, error) {
	in, err := m.base().bind(l)
	if err != nil {
		return nil, err
	}
	to := l.Add(cmp.Or(column, Prediction))
	return func(row []model.Cell) error {
		var one [1]float64
		switch ok, err := in.marginsTo(row, one[:]); {
		case err != nil:
			return err
		case !ok:
			row[to].SetNull()
		default:
			row[to].SetFloat(of(m, one[0]))
		}
		return nil
	}, nil
}

// BindClass returns the step of a classifier. The step adds two columns: the column named
// column has the predicted classes, and the column named vector has vectors of size values. The
// step calls of(dst) with dst of length size, whose first elements are the margins of the row.
// The function of must overwrite dst with the vector, and return the index of the class, or −1
// for no class.
func BindClass(m *Model, l *model.Layout, c Classes, column, vector string, size int, of func(dst []float64) int) (model.Step, error) {
	in, err := m.bind(l)
	if err != nil {
		return nil, err
	}
	set, err := c.Setter()
	if err != nil {
		return nil, err
	}
	class, values := l.Add(cmp.Or(column, Prediction)), l.Add(vector)
	return func(row []model.Cell) error {
		dst := row[values].MakeDense(size)
		switch ok, err := in.marginsTo(row, dst[:m.Margins()]); {
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

// marginsTo writes the margins of a row to dst, whose length is the number of margins. It adds
// the offset to the first margin. ok is false if a cell that it reads is null. marginsTo does
// not allocate memory. Errors name the column.
func (b *binding) marginsTo(row []model.Cell, dst []float64) (ok bool, err error) {
	var offset float64
	if b.offset >= 0 {
		cell := &row[b.offset]
		if cell.Kind == model.NullCell {
			return false, nil
		}
		v, number := cell.Number()
		if !number || !kernel.Finite(v) {
			return false, fmt.Errorf("column %q: the offset is %v %v, not a number", b.m.OffsetCol, cell.Kind, v)
		}
		offset = v
	}
	x, ok, err := b.in.Read(row)
	if !ok {
		return false, err
	}
	if x.Indices == nil {
		b.m.MarginsTo(x.Values, dst)
	} else {
		b.m.SparseMarginsTo(x.Indices, x.Values, dst)
	}
	if b.offset >= 0 {
		dst[0] += offset
	}
	return true, nil
}
