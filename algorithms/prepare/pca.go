package prepare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// PCA computes a dense vector with the first K principal components of each row. They are the
// coordinates of the row, relative to the mean, along the directions of largest variance. The
// sign of each direction is chosen so that its component of the largest absolute value is
// positive. If several components have that absolute value, the first of them is positive.
// Missing values are an error: use an Imputer before PCA.
//
// For d features, one pass over the rows computes the means, and another computes the d·(d+1)/2
// numbers of the covariance matrix. One subtask then computes the eigenvectors of the matrix in
// about 10·d³ operations.
type PCA struct {
	// Columns are columns of numbers and of vectors. Their components are taken in this order.
	// Required.
	Columns []string `json:"columns"`
	// Output names the vector column; empty means "components".
	Output string `json:"output,omitempty"`
	// K is the number of components in the output; 0 means all.
	K int `json:"k,omitempty"`
	// Whiten divides each component by its standard deviation. A component with deviation 0
	// becomes 0.
	Whiten bool `json:"whiten,omitempty"`
	// WeightCol names a column of row weights, numbers of 0 or more. A weight says how often
	// its row counts; rows of weight 0 are ignored. If WeightCol is empty, every row counts
	// once.
	WeightCol string `json:"weight_col,omitempty"`
}

const (
	defaultComponents = "components"
	maxPCA            = 10_000
)

// Kind returns "pca".
func (PCA) Kind() string { return "pca" }

func (p PCA) output() string { return cmp.Or(p.Output, defaultComponents) }

// Validate returns everything that is wrong with the parameters.
func (p PCA) Validate() error {
	err := checkNames(p.Columns, nil)
	if p.K < 0 || p.K > maxPCA {
		err = errors.Join(err, wrong("K is %d: want 1 to %d, or 0 for all components", p.K, maxPCA))
	}
	return err
}

func (p PCA) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	fields, err := find(schema, p.Columns, numberColumns|vectorColumns, "numbers or vectors")
	if err != nil {
		return nil, err
	}
	d := 0
	for _, f := range fields {
		n := sizeOfType(f.Type)
		if n == 0 {
			d = 0
			break
		}
		d += n
	}
	if d > 0 {
		if err := p.checkDim(d); err != nil {
			return nil, err
		}
	}
	if p.K > 0 {
		d = p.K
	}
	dt, err := vectorType(false, d)
	return []arrow.Field{{Name: p.output(), Type: dt}}, err
}

// checkDim returns an error if d features are too many, or fewer than K.
func (p PCA) checkDim(d int) error {
	switch {
	case d > maxPCA:
		return fmt.Errorf("there are %d components, whose covariance takes %d bytes: PCA takes at most %d", d, 8*d*d, maxPCA)
	case p.K > d:
		return wrong("K is %d, of only %d components", p.K, d)
	}
	return nil
}

// Fit learns means, directions and variances.
func (p PCA) Fit(rows *engine.Dataset) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		fields, _ := find(arrowrows.Arrow(rows.Schema()), p.Columns, numberColumns|vectorColumns, "") // fit has checked them
		first := moments(p.Columns, sparseOf(fields), nil)
		settle := first.finish
		first.finish = func(f *facts, sums, most []float64) error {
			if err := p.checkDim(f.Dim); err != nil {
				return err
			}
			switch {
			case p.WeightCol == "" && f.Rows < 2:
				return errors.New("there is one row: variances need at least two")
			case !(f.Weight > 1):
				return fmt.Errorf("the rows weigh %v in all: variances are divided by that less 1, and need more: scale the weights up", f.Weight)
			}
			return settle(f, sums, most)
		}
		return survey{name: p.Kind(), columns: p.Columns, weight: p.WeightCol, passes: []pass{first, covariance(p.Columns)}, finish: p.finish}.add(rows)
	})
}

func (p PCA) finish(ctx context.Context, f *facts, inputs []model.Input) (model.Model, error) {
	d := f.Dim
	a := make([]float64, d*d)
	upper := f.Covariance
	trace := 0.0
	for i := range d {
		for j := i; j < d; j++ {
			v := upper[j-i] / (f.Weight - 1)
			a[i*d+j], a[j*d+i] = v, v
		}
		trace += a[i*d+i]
		upper = upper[d-i:]
	}
	values, vectors, err := symmetricEigen(ctx, a, d)
	if err != nil {
		return nil, err
	}
	k := p.K
	if k == 0 {
		k = d
	}
	m := &PCAModel{Learned: Learned{p.Kind(), inputs, f.Rows}, Params: p, Sizes: f.Size, Mean: f.Mean, Components: vectors[:k]}
	for _, v := range values[:k] {
		v = max(v, 0) // rounding may make it negative
		ratio := 0.0
		if trace > 0 {
			ratio = v / trace
		}
		m.Variance, m.Ratio = append(m.Variance, v), append(m.Ratio, ratio)
	}
	return m, nil
}

// Apply adds the components to rows.
func (p PCA) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// PCAModel is what PCA learned.
type PCAModel struct {
	Learned    `json:"-"`
	Params     PCA         `json:"params"`
	Sizes      []int       `json:"sizes"` // number of components of each column
	Mean       []float64   `json:"mean"`
	Components [][]float64 `json:"components"` // directions, of length 1
	// Variance is the variance along each direction. Its divisor is the number of rows minus 1,
	// or with weights the total weight minus 1. Ratio is the share of each Variance in the sum
	// of the variances along all directions.
	Variance []float64 `json:"variance"`
	Ratio    []float64 `json:"ratio"`
}

// Encode returns the model's file.
func (m *PCAModel) Encode() ([]byte, error) { return encode(m) }

// Transform adds the components to rows.
func (m *PCAModel) Transform(rows *engine.Dataset) *engine.Dataset { return transform(m, rows) }

func (m *PCAModel) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return m.Params.outputs(schema)
}

func (m *PCAModel) check() error {
	if err := m.Params.Validate(); err != nil {
		return err
	}
	d, k := 0, len(m.Components)
	for _, n := range m.Sizes {
		if n < 1 || n > maxPCA {
			return fmt.Errorf("a column has %d components", n)
		}
		d += n
	}
	switch {
	case len(m.Sizes) != len(m.Params.Columns):
		return fmt.Errorf("there are %d columns and %d sizes", len(m.Params.Columns), len(m.Sizes))
	case len(m.Mean) != d:
		return fmt.Errorf("there are %d means of %d components", len(m.Mean), d)
	case k == 0 || k > d || m.Params.K != 0 && m.Params.K != k || len(m.Variance) != k || len(m.Ratio) != k:
		return fmt.Errorf("there are %d directions, %d variances and %d ratios of %d components", k, len(m.Variance), len(m.Ratio), d)
	}
	for i, c := range m.Components {
		if len(c) != d || !(m.Variance[i] >= 0) {
			return fmt.Errorf("direction %d has %d components and variance %v", i, len(c), m.Variance[i])
		}
	}
	return nil
}

// Bind implements model.Binder.
func (m *PCAModel) Bind(l *model.Layout) (model.Step, error) {
	in, out, err := bindColumns(l, m.Params.Columns, []string{m.Params.output()})
	if err != nil {
		return nil, err
	}
	scratch := l.Add("") // the row minus the mean
	scale := make([]float64, len(m.Components))
	for k, v := range m.Variance {
		scale[k] = 1
		if m.Params.Whiten {
			scale[k] = math.Sqrt(v)
		}
	}
	return func(row []model.Cell) error {
		x := row[scratch].MakeDense(len(m.Mean))
		at := 0
		for i, n := range m.Sizes {
			if err := flatten(&row[in[i]], x[at:at+n]); err != nil {
				return columnError(m.Params.Columns[i], err)
			}
			at += n
		}
		for j, v := range m.Mean {
			x[j] -= v
		}
		made := row[out[0]].MakeDense(len(m.Components))
		for k, c := range m.Components {
			made[k] = 0
			if scale[k] > 0 {
				made[k] = kernel.Dot(x, c) / scale[k]
			}
		}
		return nil
	}, nil
}
