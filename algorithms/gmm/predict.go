package gmm

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// PredictOptions change what Predict reads and writes.
type PredictOptions struct {
	// VectorCol names the column of the points; empty means the columns of training.
	VectorCol string
	// ComponentCol names the new int64 column of the most probable component; empty means
	// "component".
	ComponentCol string
	// ProbabilityCol names the new vector column of the probabilities of all components;
	// empty means "probabilities".
	ProbabilityCol string
	// DensityCol, if not empty, names a new float64 column of the logarithm of the density.
	DensityCol string
	// Skip gives rows null in which something is null, NaN or infinite; otherwise such a
	// row is an error.
	Skip bool
}

// errUnusable ends messages about rows that Skip takes.
var errUnusable = errors.New("; fill it in, or set Skip to predict null for such rows")

// Predict adds to each row of points its most probable component of a mixture and the
// probabilities of all, the same as the methods of Model return. The mixture is a dataset
// of one row, from Train or from Model.Dataset. Rows stay in place.
func Predict(points, mixture *engine.Dataset, o PredictOptions) *engine.Dataset {
	const op = "gmm.Predict"
	b := model.BuilderOf(op, points)
	if points.Poisoned() {
		return points
	}
	if o.VectorCol != "" {
		i, err := batch.FindColumn(points.Schema(), o.VectorCol)
		if err == nil && !batch.IsVector(points.Schema().Field(i).Type) {
			err = fmt.Errorf("column %q is %s, not a vector", o.VectorCol, batch.TypeName(points.Schema().Field(i).Type))
		}
		if err != nil {
			b.Errorf("%s: %w", op, err)
			return b.Poisoned(op)
		}
	}
	return model.ApplyRows(op, points, mixture, model.RowApplication{
		Op: "GMMPredict", Attrs: []engine.Attr{{Key: "columns", Value: o.names()}}, Outputs: o.outputs(),
		Decode: func(file []byte) (model.Binder, error) {
			m, err := Decode(file)
			return binder{m, o}, err
		},
	})
}

func (o PredictOptions) component() string   { return or(o.ComponentCol, "component") }
func (o PredictOptions) probability() string { return or(o.ProbabilityCol, "probabilities") }

func or(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// outputs are the columns that Predict adds.
func (o PredictOptions) outputs() []arrow.Field {
	fields := []arrow.Field{
		{Name: o.component(), Type: arrow.PrimitiveTypes.Int64, Nullable: o.Skip},
		{Name: o.probability(), Type: batch.VariableVectorType(), Nullable: o.Skip},
	}
	if o.DensityCol != "" {
		fields = append(fields, arrow.Field{Name: o.DensityCol, Type: arrow.PrimitiveTypes.Float64, Nullable: o.Skip})
	}
	return fields
}

func (o PredictOptions) names() string {
	names := o.component() + ", " + o.probability()
	if o.DensityCol != "" {
		names += ", " + o.DensityCol
	}
	return names
}

// Bind implements model.Binder, with the columns "component" and "probabilities".
func (m *Model) Bind(l *model.Layout) (model.Step, error) { return m.bind(l, PredictOptions{}) }

// binder is a model with options.
type binder struct {
	*Model
	options PredictOptions
}

// Bind implements model.Binder.
func (b binder) Bind(l *model.Layout) (model.Step, error) { return b.bind(l, b.options) }

func (m *Model) bind(l *model.Layout, o PredictOptions) (model.Step, error) {
	point, err := m.columns.bind(l, o.VectorCol, m.Dim)
	if err != nil {
		return nil, err
	}
	component, probability, density := l.Add(o.component()), l.Add(o.probability()), -1
	if o.DensityCol != "" {
		density = l.Add(o.DensityCol)
	}
	return func(row []model.Cell) error {
		w := m.take1()
		defer m.works.Put(w)
		x, err := point.read(row, w.x)
		if err != nil && o.Skip && errors.Is(err, errUnusable) {
			row[component].SetNull()
			row[probability].SetNull()
			if density >= 0 {
				row[density].SetNull()
			}
			return nil
		}
		if err != nil {
			return err
		}
		log := m.evaluate(x, w)
		if math.IsNaN(log) {
			return fmt.Errorf("column %q: the point is too far from every component for float64", point.inputs[0].Column)
		}
		at, _ := best(w.log)
		row[component].SetInt(int64(at))
		copy(row[probability].MakeDense(len(w.log)), w.log)
		if density >= 0 {
			row[density].SetFloat(log)
		}
		return nil
	}, nil
}
