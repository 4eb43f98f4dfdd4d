package forest

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// inputs are the columns that hold the features of a row: one vector, or scalars, each of
// them a feature.
type inputs []model.Input

// check tells what does not hold together, given the categories of the features.
func (in inputs) check(dim int, categories [][]string) error {
	d := 0
	for j, c := range in {
		dt, err := batch.ParseType(c.Type)
		switch {
		case err != nil:
			return fmt.Errorf("input %q: %w", c.Column, err)
		case batch.IsVector(dt) && len(in) == 1:
			d = batch.VectorDim(dt)
			continue
		case dt.ID() == arrow.STRING:
			if j >= len(categories) || categories[j] == nil {
				return fmt.Errorf("input %q is text, and the model has no categories of it", c.Column)
			}
		case !batch.IsNumber(dt):
			return fmt.Errorf("input %q is %s: want a vector, or numbers, bools and text", c.Column, c.Type)
		}
		d++
	}
	if d != dim || d == 0 {
		return fmt.Errorf("the inputs have %d features, dim is %d", d, dim)
	}
	return nil
}

// isVector tells whether the features are one vector.
func (in inputs) isVector() bool {
	dt, err := batch.ParseType(in[0].Type)
	return err == nil && batch.IsVector(dt)
}

// reader reads features from the cells of rows. Any number of goroutines may use one, each
// with a row of its own.
type reader struct {
	names  []string
	cells  []int
	joined int // cell of the features of several columns, -1 for one vector
	dim    int
	// codes has the codes of the categories of text; nil for numbers.
	codes []map[string]int32
}

// bind finds the columns in a layout, those of the options where they name any.
func (m *Model) reader(l *model.Layout, o PredictOptions) (*reader, error) {
	r := &reader{names: o.FeatureCols, joined: -1, dim: m.Dim}
	if o.VectorCol != "" {
		r.names = []string{o.VectorCol}
	}
	if len(r.names) == 0 {
		for _, c := range m.inputs {
			r.names = append(r.names, c.Column)
		}
	}
	for _, name := range r.names {
		cell, err := l.Find(name)
		if err != nil {
			return nil, fmt.Errorf("features: %w", err)
		}
		r.cells = append(r.cells, cell)
	}
	if len(o.FeatureCols) == 0 && (o.VectorCol != "" || m.inputs.isVector()) {
		return r, nil
	}
	if len(r.names) != m.Dim {
		return nil, fmt.Errorf("features: there are %d columns, the model was trained on %d", len(r.names), m.Dim)
	}
	r.joined = l.Add("")
	r.codes = make([]map[string]int32, m.Dim)
	for j := range r.codes {
		if j < len(m.Trees.Categories) && m.Trees.Categories[j] != nil {
			r.codes[j] = make(map[string]int32, len(m.Trees.Categories[j]))
			for code, name := range m.Trees.Categories[j] {
				r.codes[j][name] = int32(code)
			}
		}
	}
	return r, nil
}

// read returns the features of a row, which are views of its cells: what is null is NaN,
// what is no category of training is −1. It reports false for a vector that is null. It
// allocates nothing once the row's cells have been as long as they get. The error names the
// column.
func (r *reader) read(row []model.Cell) (p signature.Point, ok bool, err error) {
	if r.joined >= 0 {
		return r.join(row)
	}
	c := &row[r.cells[0]]
	switch c.Kind {
	case model.NullCell:
		return p, false, nil
	case model.DenseCell:
		if len(c.Values) != r.dim {
			return p, false, r.otherDim(len(c.Values))
		}
		return signature.Dense(c.Values), true, nil
	case model.SparseCell:
		if c.Size != 0 && c.Size != r.dim {
			return p, false, r.otherDim(c.Size)
		}
		if !signature.Ascending(c.Indices, r.dim) || len(c.Indices) != len(c.Values) {
			return p, false, fmt.Errorf("column %q: the indices do not ascend within the %d features of the model", r.names[0], r.dim)
		}
		return signature.Sparse(c.Indices, c.Values), true, nil
	}
	return p, false, fmt.Errorf("column %q is %s, the model reads a vector of %d", r.names[0], c.Kind, r.dim)
}

// join reads columns that are features each.
func (r *reader) join(row []model.Cell) (p signature.Point, ok bool, err error) {
	x := row[r.joined].MakeDense(r.dim)
	for j, cell := range r.cells {
		c := &row[cell]
		switch v, number := c.Number(); {
		case c.Kind == model.NullCell:
			x[j] = nan
		case c.Kind == model.TextCell && r.codes[j] != nil:
			code, known := r.codes[j][c.Text]
			if !known {
				code = -1
			}
			x[j] = float64(code)
		case number && r.codes[j] == nil:
			x[j] = v
		default:
			want := "a number"
			if r.codes[j] != nil {
				want = "text"
			}
			return p, false, fmt.Errorf("column %q is %s, the model reads %s", r.names[j], c.Kind, want)
		}
	}
	return signature.Dense(x), true, nil
}

func (r *reader) otherDim(d int) error {
	return fmt.Errorf("column %q has %d components, the model was trained on %d", r.names[0], d, r.dim)
}
