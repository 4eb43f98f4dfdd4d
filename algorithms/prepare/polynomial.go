package prepare

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// PolynomialFeatures computes a dense vector with all products of up to Degree components of
// columns. For components a and b and degree 2, these are a, b, a², ab, b². Products of fewer
// factors come first; products with the same number of factors are in the lexicographic order
// of their factors. Factors are multiplied from the first to the last.
type PolynomialFeatures struct {
	// Columns are columns of numbers, bools and dense vectors. Their components are taken in
	// this order. Required. Nulls are errors; NaN stays NaN.
	Columns []string `json:"columns"`
	// Output names the vector column; empty means "features".
	Output string `json:"output,omitempty"`
	// Degree is the largest number of factors; 0 means 2.
	Degree int `json:"degree,omitempty"`
	// InteractionOnly leaves out products that contain a component twice.
	InteractionOnly bool `json:"interaction_only,omitempty"`
	// Bias adds a component of value 1 before all others.
	Bias bool `json:"bias,omitempty"`
}

const (
	defaultDegree = 2
	maxDegree     = 32
	maxProducts   = 1 << 20
)

// Kind returns "polynomial-features".
func (PolynomialFeatures) Kind() string { return "polynomial-features" }

func (p PolynomialFeatures) output() string { return cmp.Or(p.Output, defaultFeatures) }

// Validate returns everything that is wrong with the parameters.
func (p PolynomialFeatures) Validate() error {
	err := checkNames(p.Columns, nil)
	if p.Degree < 0 || p.Degree > maxDegree {
		err = errors.Join(err, wrong("Degree is %d: want 1 to %d, or 0 for %d", p.Degree, maxDegree, defaultDegree))
	}
	return err
}

// product describes a component of the result. It is the product at index before, times the
// component of the input at index factor.
type product struct {
	before int // -1 if the product is the component of the input alone
	factor int
}

// products returns the products of d components.
func (p PolynomialFeatures) products(d int) ([]product, error) {
	degree := p.Degree
	if degree == 0 {
		degree = defaultDegree
	}
	var all []product
	from, to := -1, 0 // range of the products with one factor fewer
	for range degree {
		next := len(all)
		for before := from; before < to; before++ {
			first := 0
			if before >= 0 {
				first = all[before].factor
				if p.InteractionOnly {
					first++
				}
			}
			if len(all)+d-first > maxProducts {
				return nil, fmt.Errorf("%d components have more than %d products of degree %d: lower Degree", d, maxProducts, degree)
			}
			for j := first; j < d; j++ {
				all = append(all, product{before, j})
			}
		}
		from, to = next, len(all)
	}
	return all, nil
}

func (p PolynomialFeatures) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	fields, err := find(schema, p.Columns, numberColumns|denseColumns, "numbers, bools or dense vectors")
	if err != nil {
		return nil, err
	}
	d, n := 0, 0
	for _, f := range fields {
		if sizeOfType(f.Type) == 0 {
			d = -1
			break
		}
		d += sizeOfType(f.Type)
	}
	if d > 0 {
		all, err := p.products(d)
		if err != nil {
			return nil, err
		}
		n = len(all)
		if p.Bias {
			n++
		}
	}
	dt, err := vectorType(false, n)
	return []arrow.Field{{Name: p.output(), Type: dt}}, err
}

// Fit learns the sizes of the vector columns whose types do not give a size.
func (p PolynomialFeatures) Fit(rows *engine.Dataset) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		fields, _ := find(arrowrows.Arrow(rows.Schema()), p.Columns, numberColumns|denseColumns, "") // fit has checked them
		return learnSizes(p, rows, fields, func(f *facts, inputs []model.Input) (preparation, error) {
			m := &PolynomialModel{Learned: Learned{p.Kind(), inputs, f.Rows}, Params: p, Sizes: f.Size}
			_, err := p.products(m.dim())
			return m, err
		})
	})
}

// Apply adds the vectors to rows.
func (p PolynomialFeatures) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// PolynomialModel is a PolynomialFeatures together with the sizes of its columns.
type PolynomialModel struct {
	Learned `json:"-"`
	Params  PolynomialFeatures `json:"params"`
	Sizes   []int              `json:"sizes"` // number of components of each column
}

func (m *PolynomialModel) dim() int {
	d := 0
	for _, n := range m.Sizes {
		d += n
	}
	return d
}

// Powers returns a slice for each component of the result. The slice has the exponent of each
// component of the input in the product.
func (m *PolynomialModel) Powers() [][]int {
	d := m.dim()
	all, _ := m.Params.products(d) // cannot fail: check has called it
	powers := make([][]int, len(all))
	for i, q := range all {
		powers[i] = make([]int, d)
		if q.before >= 0 {
			copy(powers[i], powers[q.before])
		}
		powers[i][q.factor]++
	}
	if m.Params.Bias {
		powers = append([][]int{make([]int, d)}, powers...)
	}
	return powers
}

// Encode returns the model's file.
func (m *PolynomialModel) Encode() ([]byte, error) { return encode(m) }

// Transform adds the vectors to rows.
func (m *PolynomialModel) Transform(rows *engine.Dataset) *engine.Dataset { return transform(m, rows) }

func (m *PolynomialModel) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return m.Params.outputs(schema)
}

func (m *PolynomialModel) check() error {
	if err := m.Params.Validate(); err != nil {
		return err
	}
	if len(m.Sizes) != len(m.Params.Columns) {
		return fmt.Errorf("there are %d columns and %d sizes", len(m.Params.Columns), len(m.Sizes))
	}
	for i, n := range m.Sizes {
		if n < 0 || n > maxProducts {
			return fmt.Errorf("column %q has %d components", m.Params.Columns[i], n)
		}
	}
	if m.dim() == 0 {
		return errors.New("the columns have no components")
	}
	_, err := m.Params.products(m.dim())
	return err
}

// Bind implements model.Binder.
func (m *PolynomialModel) Bind(l *model.Layout) (model.Step, error) {
	in, out, err := bindColumns(l, m.Params.Columns, []string{m.Params.output()})
	if err != nil {
		return nil, err
	}
	d := m.dim()
	all, err := m.Params.products(d)
	if err != nil {
		return nil, err
	}
	return func(row []model.Cell) error {
		for i := range in {
			c := &row[in[i]]
			if c.Kind == model.NullCell {
				return columnError(m.Params.Columns[i], errors.New("it is null: an imputer fills it in"))
			}
			if err := checkSize(c, m.Sizes[i]); err != nil {
				return columnError(m.Params.Columns[i], err)
			}
		}
		var values []float64
		if m.Params.Bias {
			values = row[out[0]].MakeDense(len(all) + 1)
			values[0], values = 1, values[1:]
		} else {
			values = row[out[0]].MakeDense(len(all))
		}
		// The products of a single factor are the components themselves.
		at := 0
		for i := range in {
			putDense(&row[in[i]], values[at:at+m.Sizes[i]])
			at += m.Sizes[i]
		}
		for k, q := range all[d:] {
			values[d+k] = values[q.before] * values[q.factor]
		}
		return nil
	}, nil
}
