package signature

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Reader reads points from the cells of rows. Any number of goroutines may use it, each with
// its own row.
type Reader struct {
	names  []string
	cells  []int
	joined int // index of the cell in which several columns are concatenated; −1 for one vector
	dim    int
	skip   bool
	coded  *Coded // how coded features are read; nil unless BindCoded returned the Reader
}

// Bind returns a Reader that reads dim features from rows with the layout l. It reads the
// columns that the options o name, or else the columns of the inputs. Check must have
// returned no error for the inputs.
func (in Inputs) Bind(l *model.Layout, o model.PredictOptions, dim int) (*Reader, error) {
	r := &Reader{names: o.FeatureCols, joined: -1, dim: dim, skip: o.Skip}
	if o.VectorCol != "" {
		r.names = []string{o.VectorCol}
	}
	if len(r.names) == 0 {
		for _, c := range in {
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
	if len(o.FeatureCols) > 0 || o.VectorCol == "" && in.Vector() == "" {
		r.joined = l.Add("")
	}
	return r, nil
}

// Vector returns the name of the first column. The second result reports whether the features
// are one vector.
func (r *Reader) Vector() (column string, is bool) { return r.names[0], r.joined < 0 }

// Name returns the name of the first column, for messages about a point.
func (r *Reader) Name() string { return r.names[0] }

// Read returns the features of a row, as views of the row's cells. ok is false if a feature is
// null or, with Skip, NaN or infinite. Read does not allocate memory if the same row was used
// before for vectors of the same size. The error names the column.
func (r *Reader) Read(row []model.Cell) (p Point, ok bool, err error) {
	if r.coded != nil && r.joined >= 0 {
		return r.joinCoded(row)
	}
	for _, cell := range r.cells {
		if row[cell].Kind == model.NullCell {
			return Point{}, false, nil
		}
	}
	if r.joined >= 0 {
		return r.join(row)
	}
	c := &row[r.cells[0]]
	switch c.Kind {
	case model.DenseCell:
		if len(c.Values) != r.dim {
			return Point{}, false, r.otherDim(len(c.Values))
		}
		p = Dense(c.Values)
	case model.SparseCell:
		if c.Size != 0 && c.Size != r.dim {
			return Point{}, false, r.otherDim(c.Size)
		}
		p = Sparse(c.Indices, c.Values)
		if problem := p.Problem(r.dim); problem != "" {
			return Point{}, false, fmt.Errorf("column %q %s", r.names[0], problem)
		}
	default:
		return Point{}, false, fmt.Errorf("column %q is %s, the model reads a vector of %d", r.names[0], c.Kind, r.dim)
	}
	if r.coded != nil {
		return p, true, nil
	}
	for j, v := range p.Values {
		if !kernel.Finite(v) {
			if p.Indices != nil {
				j = int(p.Indices[j])
			}
			return Point{}, false, r.refuse("column %q: component %d is %v", r.names[0], j, v)
		}
	}
	return p, true, nil
}

// join reads several columns and concatenates them.
func (r *Reader) join(row []model.Cell) (p Point, ok bool, err error) {
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
			return Point{}, false, fmt.Errorf("column %q is %s, not a number", r.names[q], c.Kind)
		}
		for _, v := range values {
			if !kernel.Finite(v) {
				return Point{}, false, r.refuse("column %q is %v", r.names[q], v)
			}
			if at < r.dim {
				x[at] = v
			}
			at++
		}
	}
	if at != r.dim {
		return Point{}, false, fmt.Errorf("the columns have %d components, the model was trained on %d", at, r.dim)
	}
	return Dense(x), true, nil
}

func (r *Reader) otherDim(d int) error {
	return fmt.Errorf("column %q has %d components, the model was trained on %d", r.names[0], d, r.dim)
}

// refuse returns the error about a value that is NaN or infinite, or nil with Skip.
func (r *Reader) refuse(format string, a ...any) error {
	if r.skip {
		return nil
	}
	return &model.Refused{Err: fmt.Errorf(format, a...), Cure: engine.LeaveOut, Advice: "set Skip to give such rows null"}
}
