package mlp

import (
	"cmp"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/columns"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// PredictOptions change what Predict reads and writes.
type PredictOptions struct {
	// VectorCol or FeatureCols are read in place of the columns that the model was trained
	// on; empty means those.
	VectorCol   string
	FeatureCols []string
	// PredictionCol names the new column of predictions: numbers, or classes of the type of
	// the labels; empty means "prediction".
	PredictionCol string
	// ProbabilityCol names the new vector column of the probability of each class, in the
	// order of Model.Classes; empty means "probability". A regression adds none.
	ProbabilityCol string
	// Replace puts them in the place of columns of their names, which otherwise are an error.
	Replace bool
	// Skip gives rows that hold a NaN or an infinity null in place of failing the run. Rows
	// with nulls are given null in either case.
	Skip bool
}

func (o PredictOptions) prediction() string  { return cmp.Or(o.PredictionCol, "prediction") }
func (o PredictOptions) probability() string { return cmp.Or(o.ProbabilityCol, "probability") }

// features says which columns are read.
func (o PredictOptions) features() columns.Override {
	return columns.Override{VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, Skip: o.Skip}
}

// Predict adds to each row what a model predicts and, for classes, the probabilities of
// all, the same as the methods of Model give. The model is a dataset of one row, from
// Train or from Model.Dataset. Rows stay in place.
func Predict(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	const op = "mlp.Predict"
	b := model.BuilderOf(op, d)
	label := columns.LabelType(made)
	if err := o.features().Check(); err != nil {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	return model.ApplyRows(op, d, made, model.RowApplication{
		Op: "MLPPredict", Replace: o.Replace,
		Attrs:   []engine.Attr{{Key: "prediction", Value: o.prediction()}},
		Outputs: columns.Outputs(label, o.prediction(), o.probability()),
		Decode: func(file []byte) (model.Binder, error) {
			m, err := Decode(file)
			if err == nil && (m.Task == Classification) != (label != nil) {
				err = fmt.Errorf("the model is a %v, and its dataset is of the other kind: give Predict the dataset that training returned", m.Task)
			} else if err == nil && label != nil {
				err = m.Classes.Match(label)
			}
			return binder{m, o}, err
		},
	})
}

// binder is a model with options.
type binder struct {
	*Model
	options PredictOptions
}

// Bind implements model.Binder.
func (b binder) Bind(l *model.Layout) (model.Step, error) { return b.bind(l, b.options) }

// Bind implements model.Binder, with the columns that training named.
func (m *Model) Bind(l *model.Layout) (model.Step, error) { return m.bind(l, m.options()) }

// options are those of a model that is applied by itself.
func (m *Model) options() PredictOptions {
	return PredictOptions{PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol}
}

func (m *Model) bind(l *model.Layout, o PredictOptions) (model.Step, error) {
	in, err := m.columns.Bind(l, o.features(), m.Dim)
	if err != nil {
		return nil, err
	}
	prediction, probability := l.Add(o.prediction()), -1
	var classes []model.Cell
	if m.Task == Classification {
		if classes, err = m.Classes.Cells(); err != nil {
			return nil, err
		}
		probability = l.Add(o.probability())
	}
	return func(row []model.Cell) error {
		x, ok, err := in.Read(row)
		if err != nil {
			return err
		}
		if !ok {
			row[prediction].SetNull()
			if probability >= 0 {
				row[probability].SetNull()
			}
			return nil
		}
		p := m.evaluate(x)
		if p == nil {
			return fmt.Errorf("column %q: the model reads %d features", in.Name(), m.Dim)
		}
		defer m.passes.Put(p)
		outputs := m.outputs(p)
		v := m.decide(outputs)
		if math.IsNaN(v) || probability >= 0 && v < 0 {
			return fmt.Errorf("column %q: the features are so large that nothing can be predicted", in.Name())
		}
		if probability < 0 {
			row[prediction].SetFloat(v)
			return nil
		}
		columns.SetCell(&row[prediction], &classes[int(v)])
		m.write(outputs, row[probability].MakeDense(len(classes)))
		return nil
	}, nil
}

// Transform adds the columns of Predict to rows.
func (m *Model) Transform(d *engine.Dataset) *engine.Dataset {
	return Predict(d, m.Dataset(model.BuilderOf("mlp.Model", d)), m.options())
}

// Dataset makes the model a dataset of the job, as Train returns one.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset {
	return columns.Dataset("mlp.Model", b, m.Classes, m)
}

// ModelOf returns the model that was collected under a name from the dataset that Train
// returned.
func ModelOf(result *engine.Result, name string) (*Model, error) {
	return model.Collected(result, name, Decode)
}

// Save writes the model to a file: either the old one stays, or the whole new one is there.
func (m *Model) Save(path string) error { return model.Save(path, m) }

// Load reads a model that Save wrote.
func Load(path string) (*Model, error) { return model.Load(path, Decode) }
