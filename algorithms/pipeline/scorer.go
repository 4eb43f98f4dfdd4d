package pipeline

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/model"
)

// Scorer computes single rows by a model, without a job. It is immutable; any number of
// goroutines may use one, each with rows of its own.
type Scorer struct {
	layout *model.Layout
	step   model.Step
	inputs int
	cells  map[string]int
}

// Row has the cells of a row: the columns that the caller sets and the columns that the
// model computes. It is for one goroutine at a time and can be reused without end.
type Row struct {
	scorer *Scorer
	cells  []model.Cell
}

// Scorer returns a scorer of rows with the named columns, which must include the model's
// Inputs. Without names, rows have the Inputs, in their order.
func (m *Model) Scorer(columns ...string) (*Scorer, error) { return NewScorer(m, columns...) }

// NewScorer is Model.Scorer for a model of any kind.
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

// NewRow returns a row of nulls.
func (s *Scorer) NewRow() *Row { return &Row{s, s.layout.NewRow()} }

// Score computes the model's columns of a row. An error names the column that cannot be
// used. model.ErrSkip means that the model leaves the row out.
func (s *Scorer) Score(r *Row) error {
	if r.scorer != s {
		return fmt.Errorf("the row is another scorer's")
	}
	return s.step(r.cells)
}

// Input returns the i-th of the cells that the caller sets. They are in the order of the
// columns that the scorer was made with.
func (r *Row) Input(i int) *model.Cell {
	if i >= r.scorer.inputs {
		return nil
	}
	return &r.cells[i]
}

// Cell returns the cell of a column once the row is scored, or nil where there is no such
// column. Where a stage has replaced the column, it is the last one of that name.
func (r *Row) Cell(column string) *model.Cell {
	if i, ok := r.scorer.cells[column]; ok {
		return &r.cells[i]
	}
	return nil
}
