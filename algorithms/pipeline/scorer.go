package pipeline

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/model"
)

// Scorer applies a model to single rows, without a job. It is immutable. Any number of
// goroutines may use a Scorer, each with its own Row.
type Scorer struct {
	layout *model.Layout
	step   model.Step
	inputs int
	cells  map[string]int
}

// Row has the cells of a row: the columns that the caller sets and the columns that the model
// computes. Only one goroutine at a time may use a Row. It can be reused for any number of
// rows.
type Row struct {
	scorer *Scorer
	cells  []model.Cell
}

// Scorer returns a Scorer for rows with the named columns, which must include the model's
// Inputs. If no columns are named, rows have the columns of Inputs, in the same order.
func (m *Model) Scorer(columns ...string) (*Scorer, error) { return NewScorer(m, columns...) }

// NewScorer does what Model.Scorer does, for a model of any kind.
func NewScorer(m model.Model, columns ...string) (*Scorer, error) {
	if len(columns) == 0 {
		for _, in := range m.Inputs() {
			columns = append(columns, in.Column)
		}
	}
	for i, name := range columns {
		for _, other := range columns[:i] {
			if name == other {
				return nil, fmt.Errorf("column %q is named twice", name)
			}
		}
	}
	s := &Scorer{layout: model.NewLayout(columns...), inputs: len(columns)}
	var err error
	if s.step, err = catalog.Bind(m, s.layout); err != nil {
		return nil, err
	}
	s.cells = s.layout.Columns()
	return s, nil
}

// NewRow returns a row whose cells are null.
func (s *Scorer) NewRow() *Row { return &Row{s, s.layout.NewRow()} }

// Score computes the cells of the columns that the model adds to a row. An error names the
// column whose value cannot be used. The error model.ErrSkip means that the model leaves the
// row out.
func (s *Scorer) Score(r *Row) error {
	if r.scorer != s {
		return fmt.Errorf("the row is another scorer's")
	}
	return s.step(r.cells)
}

// Input returns the i-th cell that the caller sets. These cells are in the order of the columns
// that were passed to Scorer or NewScorer. If i is too large, Input returns nil.
func (r *Row) Input(i int) *model.Cell {
	if i >= r.scorer.inputs {
		return nil
	}
	return &r.cells[i]
}

// Cell returns the cell of a column, or nil if there is no such column. Cells that the model
// computes are set by Score. If a stage replaces a column, Cell returns the cell of the last
// column of that name.
func (r *Row) Cell(column string) *model.Cell {
	if i, ok := r.scorer.cells[column]; ok {
		return &r.cells[i]
	}
	return nil
}
