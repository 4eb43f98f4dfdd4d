package prepare

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// ScalerModel is what all scalers learn: for each component of each column a shift s and a
// scale c, and for all of them a width w and a low end l, so that x becomes
//
//	(x − s) / c · w + l
//
// Null stays null and NaN stays NaN. Components that sparse vectors leave out stay 0: the
// shift of sparse columns is 0, and so is the low end.
type ScalerModel struct {
	Learned `json:"-"`
	Columns []string    `json:"columns"`
	Outputs []string    `json:"outputs"`
	Shift   [][]float64 `json:"shift"` // by column and component
	Scale   [][]float64 `json:"scale"` // the same; not 0
	Width   float64     `json:"width"`
	Low     float64     `json:"low"`
	// Clip keeps results from Low to Low + Width.
	Clip bool `json:"clip"`
}

// Encode returns the model's file.
func (m *ScalerModel) Encode() ([]byte, error) { return encode(m) }

// Transform adds the scaled columns to rows, in place of those of their names.
func (m *ScalerModel) Transform(rows *engine.Dataset) *engine.Dataset { return transform(m, rows) }

func (m *ScalerModel) check() error {
	n := len(m.Columns)
	if len(m.Outputs) != n || len(m.Shift) != n || len(m.Scale) != n {
		return fmt.Errorf("there are %d columns, %d outputs, %d shifts and %d scales", n, len(m.Outputs), len(m.Shift), len(m.Scale))
	}
	for i := range m.Columns {
		if len(m.Shift[i]) != len(m.Scale[i]) {
			return fmt.Errorf("column %q has %d shifts and %d scales", m.Columns[i], len(m.Shift[i]), len(m.Scale[i]))
		}
		for j, c := range m.Scale[i] {
			if c == 0 || c-c != 0 || m.Shift[i][j]-m.Shift[i][j] != 0 {
				return fmt.Errorf("column %q: component %d has shift %v and scale %v", m.Columns[i], j, m.Shift[i][j], c)
			}
		}
	}
	return checkNames(m.Columns, m.Outputs)
}

func (m *ScalerModel) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return scaledFields(schema, m.Columns, m.Outputs, numberColumns|vectorColumns, "numbers or vectors")
}

// scaledFields returns the columns that a scaler makes.
func scaledFields(schema *arrow.Schema, columns, outputs []string, want columnKind, help string) ([]arrow.Field, error) {
	fields, err := find(schema, columns, want, help)
	if err != nil {
		return nil, err
	}
	for i, name := range namesOf(columns, outputs) {
		fields[i] = arrow.Field{Name: name, Type: float64Like(fields[i].Type), Nullable: fields[i].Nullable}
	}
	return fields, nil
}

// Bind implements model.Binder.
func (m *ScalerModel) Bind(l *model.Layout) (model.Step, error) {
	in, out, err := bindColumns(l, m.Columns, m.Outputs)
	if err != nil {
		return nil, err
	}
	return func(row []model.Cell) error {
		for i := range in {
			if err := m.scale(&row[in[i]], &row[out[i]], m.Shift[i], m.Scale[i]); err != nil {
				return columnError(m.Columns[i], err)
			}
		}
		return nil
	}, nil
}

// scale computes a cell from another.
func (m *ScalerModel) scale(from, to *model.Cell, shift, scale []float64) error {
	switch from.Kind {
	case model.NullCell:
		to.SetNull()
	case model.DenseCell:
		if len(from.Values) != len(scale) {
			return fmt.Errorf("it has %d components, the model was trained on %d", len(from.Values), len(scale))
		}
		made := to.MakeDense(len(scale))
		for j, v := range from.Values {
			made[j] = m.value(v, shift[j], scale[j])
		}
	case model.SparseCell:
		n := len(from.Indices)
		indices, values := to.MakeSparse(from.Size, n)
		for k, j := range from.Indices {
			if int(j) >= len(scale) {
				return fmt.Errorf("it has a component %d, the model was trained on %d components", j, len(scale))
			}
			indices[k], values[k] = j, m.value(from.Values[k], shift[j], scale[j])
		}
	default:
		v, ok := from.Number()
		if !ok || len(scale) != 1 {
			return fmt.Errorf("it is %s, the model was trained on another type", from.Kind)
		}
		to.SetFloat(m.value(v, shift[0], scale[0]))
	}
	return nil
}

func (m *ScalerModel) value(v, shift, scale float64) float64 {
	v = float64((v-shift)/scale*m.Width) + m.Low
	if m.Clip && v < m.Low {
		return m.Low
	}
	if m.Clip && v > m.Low+m.Width {
		return m.Low + m.Width
	}
	return v
}

// learnScale adds the queue of a scaler. of returns shift and scale of a feature; sparse
// tells whether it is one of a sparse vector.
func learnScale(p parameters, rows *engine.Dataset, columns, outputs []string, m ScalerModel, passes []pass, of func(f *facts, feature int, sparse bool) (shift, scale float64)) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		fields, _ := find(rows.Schema(), columns, numberColumns|vectorColumns, "") // fit has checked them
		sparse := sparseOf(fields)
		m.Columns, m.Outputs = columns, namesOf(columns, outputs)
		return survey{
			name: p.Kind(), columns: columns,
			passes: append([]pass{moments(columns, sparse, nil)}, passes...),
			finish: func(_ context.Context, f *facts, inputs []model.Input) (model.Model, error) {
				made := m
				made.Learned = Learned{p.Kind(), inputs, f.Rows}
				for c := range columns {
					shift, scale := make([]float64, f.Size[c]), make([]float64, f.Size[c])
					for j := range shift {
						shift[j], scale[j] = of(f, f.Offset[c]+j, sparse[c])
						if shift[j]-shift[j] != 0 || scale[j]-scale[j] != 0 {
							return nil, fmt.Errorf("the spread of %s exceeds the range of float64: scale it down", f.featureName(f.Offset[c]+j, columns))
						}
						if scale[j] == 0 {
							scale[j] = 1
						}
					}
					made.Shift, made.Scale = append(made.Shift, shift), append(made.Scale, scale)
				}
				return &made, nil
			},
		}.add(rows)
	})
}

// StandardScaler makes columns have mean 0 and standard deviation 1, with division by the
// number of values. It takes numbers and vectors, each component by itself. Sparse vectors
// are scaled without being centred. A constant component has no deviation and is only
// centred. Missing values, null and NaN, count for nothing and stay missing.
type StandardScaler struct {
	// Columns are the columns to scale. Required.
	Columns []string `json:"columns"`
	// Outputs names the scaled columns; none means that they replace Columns.
	Outputs []string `json:"outputs,omitempty"`
	// NoCenter leaves the means as they are.
	NoCenter bool `json:"no_center,omitempty"`
	// NoScale leaves the deviations as they are.
	NoScale bool `json:"no_scale,omitempty"`
}

// Kind returns "standard-scaler".
func (StandardScaler) Kind() string { return "standard-scaler" }

// Validate tells what is wrong with the parameters, all of it.
func (p StandardScaler) Validate() error { return checkNames(p.Columns, p.Outputs) }

func (p StandardScaler) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return scaledFields(schema, p.Columns, p.Outputs, numberColumns|vectorColumns, "numbers or vectors")
}

// Fit learns means and deviations.
func (p StandardScaler) Fit(rows *engine.Dataset) *engine.Dataset {
	return learnScale(p, rows, p.Columns, p.Outputs, ScalerModel{Width: 1}, []pass{deviations(p.Columns)},
		func(f *facts, j int, sparse bool) (shift, scale float64) {
			scale = 1
			if !p.NoCenter && !sparse {
				shift = f.Mean[j]
			}
			if !p.NoScale {
				scale = math.Sqrt(f.Deviation[j] / f.Count[j])
			}
			return shift, scale
		})
}

// Apply adds the scaled columns to rows.
func (p StandardScaler) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// MinMaxScaler maps columns linearly so that their least value becomes Min and their
// largest Max. It takes numbers and dense vectors, each component by itself. What is
// constant becomes Min. Missing values count for nothing and stay missing.
type MinMaxScaler struct {
	// Columns are the columns to scale. Required.
	Columns []string `json:"columns"`
	// Outputs names the scaled columns; none means that they replace Columns.
	Outputs []string `json:"outputs,omitempty"`
	// Min and Max are the new bounds; 0 for both means 0 and 1.
	Min float64 `json:"min,omitempty"`
	Max float64 `json:"max,omitempty"`
	// Clip puts values beyond those of training on the bounds.
	Clip bool `json:"clip,omitempty"`
}

// Kind returns "min-max-scaler".
func (MinMaxScaler) Kind() string { return "min-max-scaler" }

func (p MinMaxScaler) bounds() (low, high float64) {
	if p.Min == 0 && p.Max == 0 {
		return 0, 1
	}
	return p.Min, p.Max
}

// Validate tells what is wrong with the parameters, all of it.
func (p MinMaxScaler) Validate() error {
	err := checkNames(p.Columns, p.Outputs)
	low, high := p.bounds()
	if !(low < high) || high-low-(high-low) != 0 {
		return errors.Join(err, wrong("Min is %v and Max is %v: want finite numbers, the first one lower", p.Min, p.Max))
	}
	return err
}

func (p MinMaxScaler) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return scaledFields(schema, p.Columns, p.Outputs, numberColumns|denseColumns,
		"numbers or dense vectors; MaxAbsScaler takes sparse ones, whose zeros it keeps")
}

// Fit learns the least and largest values.
func (p MinMaxScaler) Fit(rows *engine.Dataset) *engine.Dataset {
	low, high := p.bounds()
	return learnScale(p, rows, p.Columns, p.Outputs, ScalerModel{Width: high - low, Low: low, Clip: p.Clip}, nil,
		func(f *facts, j int, _ bool) (shift, scale float64) { return f.Least[j], f.Most[j] - f.Least[j] })
}

// Apply adds the scaled columns to rows.
func (p MinMaxScaler) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// MaxAbsScaler divides columns by their largest absolute value, so that they lie between
// -1 and 1 and zeros stay zeros. It takes numbers and vectors, also sparse ones, each
// component by itself. Missing values count for nothing and stay missing.
type MaxAbsScaler struct {
	// Columns are the columns to scale. Required.
	Columns []string `json:"columns"`
	// Outputs names the scaled columns; none means that they replace Columns.
	Outputs []string `json:"outputs,omitempty"`
}

// Kind returns "max-abs-scaler".
func (MaxAbsScaler) Kind() string { return "max-abs-scaler" }

// Validate tells what is wrong with the parameters, all of it.
func (p MaxAbsScaler) Validate() error { return checkNames(p.Columns, p.Outputs) }

func (p MaxAbsScaler) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return scaledFields(schema, p.Columns, p.Outputs, numberColumns|vectorColumns, "numbers or vectors")
}

// Fit learns the largest absolute values.
func (p MaxAbsScaler) Fit(rows *engine.Dataset) *engine.Dataset {
	return learnScale(p, rows, p.Columns, p.Outputs, ScalerModel{Width: 1}, nil,
		func(f *facts, j int, _ bool) (shift, scale float64) { return 0, max(f.Most[j], -f.Least[j]) })
}

// Apply adds the scaled columns to rows.
func (p MaxAbsScaler) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// RobustScaler subtracts the median and divides by the distance between two quantiles, by
// default the quartiles, which outliers do not move. It takes numbers and dense vectors,
// each component by itself. Where the quantiles are the same it only centres. Quantiles are
// exact, with linear interpolation. Missing values count for nothing and stay missing.
type RobustScaler struct {
	// Columns are the columns to scale. Required.
	Columns []string `json:"columns"`
	// Outputs names the scaled columns; none means that they replace Columns.
	Outputs []string `json:"outputs,omitempty"`
	// Lower and Upper are the quantiles, as fractions; 0 for both means 0.25 and 0.75.
	Lower float64 `json:"lower,omitempty"`
	Upper float64 `json:"upper,omitempty"`
	// NoCenter leaves the medians as they are.
	NoCenter bool `json:"no_center,omitempty"`
	// NoScale leaves the spread as it is.
	NoScale bool `json:"no_scale,omitempty"`
}

// Kind returns "robust-scaler".
func (RobustScaler) Kind() string { return "robust-scaler" }

func (p RobustScaler) bounds() (lower, upper float64) {
	if p.Lower == 0 && p.Upper == 0 {
		return 0.25, 0.75
	}
	return p.Lower, p.Upper
}

// Validate tells what is wrong with the parameters, all of it.
func (p RobustScaler) Validate() error {
	err := checkNames(p.Columns, p.Outputs)
	if lower, upper := p.bounds(); !(0 <= lower && lower < upper && upper <= 1) {
		return errors.Join(err, wrong("Lower is %v and Upper is %v: want fractions from 0 to 1, the first one lower", p.Lower, p.Upper))
	}
	return err
}

func (p RobustScaler) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return scaledFields(schema, p.Columns, p.Outputs, numberColumns|denseColumns,
		"numbers or dense vectors; MaxAbsScaler takes sparse ones, whose zeros it keeps")
}

// Fit learns medians and quantiles.
func (p RobustScaler) Fit(rows *engine.Dataset) *engine.Dataset {
	lower, upper := p.bounds()
	wanted := []float64{0.5, lower, upper}
	return learnScale(p, rows, p.Columns, p.Outputs, ScalerModel{Width: 1}, selection(quantileTargets(wanted)),
		func(f *facts, j int, _ bool) (shift, scale float64) {
			scale = 1
			if !p.NoCenter {
				shift = f.quantile(j, 0, wanted)
			}
			if !p.NoScale {
				scale = f.quantile(j, 2, wanted) - f.quantile(j, 1, wanted)
			}
			return shift, scale
		})
}

// Apply adds the scaled columns to rows.
func (p RobustScaler) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}
