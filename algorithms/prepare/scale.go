package prepare

import (
	"context"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// ScalerModel is the model of all scalers. It has a shift s and a scale c for each component of
// each column, and one width w and one low end l for all components. A value x becomes
//
//	(x − s) / c · w + l
//
// Null stays null and NaN stays NaN. Components that a sparse vector does not list stay 0,
// because the components of sparse columns have shift 0 and low end 0.
type ScalerModel struct {
	Learned `json:"-"`
	Columns []string    `json:"columns"`
	Outputs []string    `json:"outputs"`
	Shift   [][]float64 `json:"shift"` // for each column, the shift s of each component
	Scale   [][]float64 `json:"scale"` // for each column, the scale c of each component; never 0
	Width   float64     `json:"width"`
	Low     float64     `json:"low"`
	// Clip replaces results below Low by Low, and results above Low + Width by Low + Width.
	Clip bool `json:"clip"`
}

// Encode returns the model's file.
func (m *ScalerModel) Encode() ([]byte, error) { return encode(m) }

// Transform adds the scaled columns to rows, replacing columns of the same names.
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

// scaledFields returns the output columns of a scaler.
func scaledFields(schema *arrow.Schema, columns, outputs []string, want columnKind, help string) ([]arrow.Field, error) {
	fields, err := find(schema, columns, want, help)
	if err != nil {
		return nil, err
	}
	for i, name := range OutputNames(columns, outputs) {
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

// scale writes the scaled value of the cell from to the cell to.
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
		if err := from.CheckSparse(len(scale)); err != nil {
			return err
		}
		indices, values := to.MakeSparse(from.Size, len(from.Indices))
		for k, j := range from.Indices {
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

// learnScale adds the queue that learns a scaler. The function of returns the shift and the
// scale of a feature. Its argument sparse is true if the feature is a component of a sparse
// vector.
func learnScale(p parameters, rows *engine.Dataset, columns, outputs []string, weight string, m ScalerModel, passes []pass, of func(f *facts, feature int, sparse bool) (shift, scale float64)) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		fields, _ := find(arrowrows.Arrow(rows.Schema()), columns, numberColumns|vectorColumns, "") // fit has checked them
		sparse := sparseOf(fields)
		m.Columns, m.Outputs = columns, OutputNames(columns, outputs)
		return survey{
			name: p.Kind(), columns: columns, weight: weight,
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
