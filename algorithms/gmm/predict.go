package gmm

import (
	"cmp"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// PredictOptions are options of Predict.
type PredictOptions struct {
	// VectorCol or FeatureCols name the columns to read. If both are empty, the columns that
	// the model was trained on are read.
	VectorCol   string
	FeatureCols []string
	// ComponentCol names the new int64 column of the most probable component; empty means
	// "component".
	ComponentCol string
	// ProbabilityCol names the new vector column of the probabilities of all components;
	// empty means "probabilities".
	ProbabilityCol string
	// DensityCol, if not empty, names a new float64 column with the logarithm of the density.
	DensityCol string
	// Replace allows the new columns to replace columns of the same names. Without Replace,
	// existing columns of these names are an error.
	Replace bool
	// With Skip, the prediction is null for rows that contain a NaN or an infinity; without
	// Skip such a row is an error. For rows that contain a null the prediction is null with and
	// without Skip.
	Skip bool
}

// Predict adds to each row of points the most probable component of a mixture and the
// probabilities of all components. Components and probabilities equal those that the methods of
// Model return. mixture is the model as a dataset of one row, from Train or from Model.Dataset.
// Rows are not moved between subtasks.
func Predict(points, mixture *engine.Dataset, o PredictOptions) *engine.Dataset {
	const op = "gmm.Predict"
	if _, refused := model.Begin(op, points, signature.CheckFeatures(o.VectorCol, o.FeatureCols)); refused != nil {
		return refused
	}
	return model.ApplyRows(op, points, mixture, model.RowApplication{
		Op: "GMMPredict", Replace: o.Replace, Attrs: []engine.Attr{{Key: "columns", Value: o.names()}}, Outputs: arrowrows.Columns(o.outputs()),
		Decode: func(file []byte) (model.Binder, error) {
			m, err := Decode(file)
			if err != nil {
				return nil, err
			}
			m.PredictionCol, m.ProbabilityCol, m.options = o.ComponentCol, o.ProbabilityCol, o
			return m, nil
		},
	})
}

// componentName and probabilityName return the name of an added column. named is the name in
// the options; if it is empty, they return the default.
func componentName(named string) string   { return cmp.Or(named, "component") }
func probabilityName(named string) string { return cmp.Or(named, "probabilities") }

func (o PredictOptions) component() string   { return componentName(o.ComponentCol) }
func (o PredictOptions) probability() string { return probabilityName(o.ProbabilityCol) }

// features returns the columns to read.
func (o PredictOptions) features() model.PredictOptions {
	return model.PredictOptions{VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, Skip: o.Skip}
}

// outputs returns the columns that Predict adds.
func (o PredictOptions) outputs() []arrow.Field {
	fields := []arrow.Field{
		{Name: o.component(), Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: o.probability(), Type: batch.VariableVectorType(), Nullable: true},
	}
	if o.DensityCol != "" {
		fields = append(fields, arrow.Field{Name: o.DensityCol, Type: arrow.PrimitiveTypes.Float64, Nullable: true})
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

// Bind implements model.Binder. Its columns have the names given to Predict or, without these,
// the names in the model.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	o := m.options
	in, err := m.columns.Bind(l, o.features(), m.Dim)
	if err != nil {
		return nil, err
	}
	component, probability, density := l.Add(componentName(m.PredictionCol)), l.Add(probabilityName(m.ProbabilityCol)), -1
	if o.DensityCol != "" {
		density = l.Add(o.DensityCol)
	}
	return func(row []model.Cell) error {
		x, ok, err := in.Read(row)
		if err != nil {
			return err
		}
		if !ok {
			row[component].SetNull()
			row[probability].SetNull()
			if density >= 0 {
				row[density].SetNull()
			}
			return nil
		}
		w := m.take1()
		defer m.works.Put(w)
		if x.Indices != nil {
			clear(w.x)
			for q, j := range x.Indices {
				w.x[j] = x.Values[q]
			}
			x.Values = w.x
		}
		log := m.evaluate(x.Values, w)
		if math.IsNaN(log) {
			return fmt.Errorf("column %q: the point is too far from every component for float64", in.Name())
		}
		row[component].SetInt(int64(kernel.Argmax(w.log)))
		copy(row[probability].MakeDense(len(w.log)), w.log)
		if density >= 0 {
			row[density].SetFloat(log)
		}
		return nil
	}, nil
}
