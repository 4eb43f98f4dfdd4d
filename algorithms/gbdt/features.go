package gbdt

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// maxConstrained bounds the number of features of vectors whose type does not tell it, where
// there are constraints by feature.
const maxConstrained = 1 << 20

// featureNames returns what finds the number of a feature by its name: that of its column,
// or, of a vector, f and the number of the component, from 0; and what numbers are below.
func (p *Params) featureNames(schema *arrow.Schema) (find func(name string) (int, error), dim int, err error) {
	if len(p.FeatureCols) > 0 {
		return func(name string) (int, error) {
			if j := slices.Index(p.FeatureCols, name); j >= 0 {
				return j, nil
			}
			return 0, fmt.Errorf("there is no feature %q: the features are %s", name, strings.Join(p.FeatureCols, ", "))
		}, len(p.FeatureCols), nil
	}
	vector := p.VectorCol
	if vector == "" {
		if vector, err = rows.OnlyVector(schema); err != nil {
			return nil, 0, err
		}
	}
	i, err := batch.FindColumn(schema, vector)
	if err != nil {
		return nil, 0, err
	}
	if dim = batch.VectorDim(schema.Field(i).Type); dim == 0 {
		dim = maxConstrained
	}
	return func(name string) (int, error) {
		j, err := strconv.Atoi(strings.TrimPrefix(name, "f"))
		if err != nil || name != featureName(j) || j < 0 || j >= dim {
			return 0, fmt.Errorf("there is no feature %q: those of column %q are f0, f1 and so on", name, vector)
		}
		return j, nil
	}, dim, nil
}

// categorical returns what tells whether a feature is categorical by its number.
func (p *Params) categorical(schema *arrow.Schema) func(j int) bool {
	return func(j int) bool {
		if len(p.FeatureCols) == 0 {
			return slices.Contains(p.CategoricalAt, j)
		}
		name := p.FeatureCols[j]
		i, err := batch.FindColumn(schema, name)
		return slices.Contains(p.CategoricalCols, name) || err == nil && schema.Field(i).Type.ID() == arrow.STRING
	}
}

// featureName is the name of a component of a vector.
func featureName(j int) string { return "f" + strconv.Itoa(j) }

// checkInputs tells what does not hold together.
func (m *Model) checkInputs() error {
	vectors := 0
	for _, c := range m.inputs {
		dt, err := batch.ParseType(c.Type)
		switch {
		case err != nil:
			return fmt.Errorf("input %q: %w", c.Column, err)
		case batch.IsVector(dt):
			vectors++
			if d := batch.VectorDim(dt); d != m.Dim {
				return fmt.Errorf("input %q has %d features, dim is %d", c.Column, d, m.Dim)
			}
		}
	}
	switch {
	case vectors > 1 || vectors == 1 && len(m.inputs) > 1:
		return errors.New("there is more than one input, and one is a vector")
	case vectors == 0 && len(m.inputs) != m.Dim:
		return fmt.Errorf("there are %d inputs of %d features", len(m.inputs), m.Dim)
	}
	return nil
}

// reader reads features from the cells of rows. Any number of goroutines may use one, each
// with a row of its own.
type reader struct {
	m      *Model
	names  []string
	cells  []int
	vector bool
}

// reader finds the columns of the features in a layout, those of the override where it names
// any.
func (m *Model) reader(l *model.Layout, o signature.Override) (*reader, error) {
	r := &reader{m: m, names: o.FeatureCols}
	if o.VectorCol != "" {
		r.names, r.vector = []string{o.VectorCol}, true
	}
	if len(r.names) == 0 {
		for _, c := range m.inputs {
			r.names = append(r.names, c.Column)
		}
		r.vector = m.ofVector()
	} else if !r.vector && len(r.names) != m.Dim {
		return nil, fmt.Errorf("FeatureCols has %d columns, the model was trained on %d features", len(r.names), m.Dim)
	}
	for _, name := range r.names {
		cell, err := l.Find(name)
		if err != nil {
			return nil, fmt.Errorf("features: %w", err)
		}
		r.cells = append(r.cells, cell)
	}
	return r, nil
}

// ofVector tells whether the model was trained on a vector.
func (m *Model) ofVector() bool {
	if len(m.inputs) != 1 {
		return false
	}
	dt, err := batch.ParseType(m.inputs[0].Type)
	return err == nil && batch.IsVector(dt)
}

// read writes the features of a row to x, NaN where one is missing. It reports false for a
// row without a vector.
func (r *reader) read(row []model.Cell, x []float64) (ok bool, err error) {
	if !r.vector {
		for j, cell := range r.cells {
			if err := r.m.readCell(&row[cell], j, x); err != nil {
				return false, fmt.Errorf("column %q: %w", r.names[j], err)
			}
		}
		return true, nil
	}
	switch c := &row[r.cells[0]]; c.Kind {
	case model.NullCell:
		return false, nil
	case model.DenseCell:
		if len(c.Values) != r.m.Dim {
			return false, r.otherDim(len(c.Values))
		}
		r.m.dense(c.Values, x)
		return true, nil
	case model.SparseCell:
		if c.Size != 0 && c.Size != r.m.Dim {
			return false, r.otherDim(c.Size)
		}
		if !r.m.sparse(c.Indices, c.Values, x) {
			return false, fmt.Errorf("column %q: the indices do not ascend within the %d features of the model", r.names[0], r.m.Dim)
		}
		return true, nil
	default:
		return false, fmt.Errorf("column %q is %s, the model reads a vector of %d", r.names[0], c.Kind, r.m.Dim)
	}
}

func (r *reader) otherDim(d int) error {
	return fmt.Errorf("column %q has %d components, the model was trained on %d", r.names[0], d, r.m.Dim)
}

// readCell writes the value of a column to its place in x: of text the code of the category,
// NaN for one that training has not seen.
func (m *Model) readCell(c *model.Cell, j int, x []float64) error {
	at := m.place(j)
	if at < 0 {
		return nil
	}
	v := math.NaN()
	switch number, ok := c.Number(); {
	case c.Kind == model.NullCell:
	case m.codes[at] != nil:
		text, ok := c.Category()
		if !ok {
			return fmt.Errorf("it is %s, the model reads categories", c.Kind)
		}
		if code, known := m.codes[at][string(text)]; known {
			v = float64(code)
		}
	case !ok:
		return fmt.Errorf("it is %s, the model reads numbers", c.Kind)
	default:
		v = number
	}
	x[at] = v
	return nil
}

// place returns where a feature stands among those of the ensemble, −1 if it does not.
func (m *Model) place(j int) int {
	if m.Columns == nil {
		return j
	}
	at := sort.Search(len(m.Columns), func(i int) bool { return int(m.Columns[i]) >= j })
	if at < len(m.Columns) && int(m.Columns[at]) == j {
		return at
	}
	return -1
}

// dense writes the features that the ensemble looks at.
func (m *Model) dense(values, x []float64) {
	if m.Columns == nil {
		copy(x, values)
		return
	}
	for at, j := range m.Columns {
		x[at] = values[j]
	}
}

// sparse writes the features that the ensemble looks at; it reports false for indices that do
// not ascend within the features of the model.
func (m *Model) sparse(indices []int32, values, x []float64) bool {
	if len(indices) != len(values) || !signature.Ascending(indices, m.Dim) {
		return false
	}
	absent := math.NaN()
	if m.AbsentIsZero {
		absent = 0
	}
	for at := range x {
		x[at] = absent
	}
	for q, j := range indices {
		if at := m.place(int(j)); at >= 0 {
			x[at] = values[q]
		}
	}
	return true
}
