package forest

import (
	"cmp"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// PredictOptions has options for the columns that Predict reads and writes.
type PredictOptions struct {
	// VectorCol or FeatureCols name the columns that are read instead of those that the model
	// was trained on. If both are empty, the columns of the training are read.
	VectorCol   string
	FeatureCols []string
	// PredictionCol names the new column of predictions: numbers, or classes in the type of the
	// labels. Empty means "prediction".
	PredictionCol string
	// ProbabilityCol names the new vector column of the probability of each class, in the order
	// of Model.Classes; empty means "probability". A regression adds no such column.
	ProbabilityCol string
	// If Replace is true, existing columns with the names of new ones are replaced. Otherwise
	// they are an error.
	Replace bool
}

func (o PredictOptions) prediction() string  { return cmp.Or(o.PredictionCol, "prediction") }
func (o PredictOptions) probability() string { return cmp.Or(o.ProbabilityCol, "probability") }

// Predict adds a model's prediction to each row and, for classes, the probabilities of all
// classes. Predictions and probabilities equal those that the methods of Model return. A row
// whose vector is null gets nulls. made is a dataset of one row with the model, from Train or
// Model.Dataset. Rows stay in their shards and in their order.
func Predict(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	return o.apply("forest.Predict", "ForestPredict", d, made, func(a *model.Application, open opener) {
		a.Open = func(file []byte, schema engine.Schema) (model.Compute, error) {
			p, err := open(file, schema)
			if err != nil {
				return nil, err
			}
			return p.compute, nil
		}
	})
}

// opener decodes a model and finds its columns in the schema of the rows.
type opener func(file []byte, schema engine.Schema) (*batches, error)

// apply adds the operator op that applies a model to d. complete sets how the operator opens a
// model.
func (o PredictOptions) apply(op, name string, d, made *engine.Dataset, complete func(a *model.Application, open opener)) *engine.Dataset {
	b := model.BuilderOf(op, d)
	if err := o.features().Check(); err != nil {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	label := signature.LabelType(made)
	outputs := signature.Outputs(label, o.prediction(), o.probability())
	a := model.Application{
		Op: name, Replace: o.Replace, Attrs: []engine.Attr{{Key: "prediction", Value: o.prediction()}}, Outputs: arrowrows.Columns(outputs),
	}
	complete(&a, func(file []byte, schema engine.Schema) (*batches, error) {
		m, err := Decode(file)
		if err == nil {
			err = m.Classes.MatchDataset(label, fmt.Sprintf("the model is a %v", m.Task))
		}
		if err != nil {
			return nil, err
		}
		return newBatches(m, o, schema, outputs)
	})
	return model.Apply(op, d, made, a)
}

// features returns the columns that are read instead of those of the training.
func (o PredictOptions) features() signature.Override {
	return signature.Override{VectorCol: o.VectorCol, FeatureCols: o.FeatureCols}
}

// reader finds the columns of the features in the layout l. Text that is not one of the
// categories is read as −1.
func (m *Model) reader(l *model.Layout, o PredictOptions) (*signature.Reader, error) {
	return m.inputs.BindCoded(l, o.features(), m.Dim, &signature.Coded{Codes: signature.CodesOf(m.Trees.Categories), Unseen: -1, Strict: true})
}

// Bind implements model.Binder. It uses the column names that were set for training.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	o := m.options()
	in, err := m.reader(l, o)
	if err != nil {
		return nil, err
	}
	m.prepare()
	names := signature.Names{Prediction: o.PredictionCol, Probability: o.ProbabilityCol}
	if m.Task == Regression {
		out := names.BindNumber(l)
		return func(row []model.Cell) error {
			x, ok, err := in.Read(row)
			if err != nil {
				return err
			}
			if !ok {
				out.SetNull(row)
				return nil
			}
			out.SetNumber(row, m.predict(x))
			return nil
		}, nil
	}
	out, err := names.BindClasses(l, m.Classes)
	if err != nil {
		return nil, err
	}
	return func(row []model.Cell) error {
		x, ok, err := in.Read(row)
		if err != nil {
			return err
		}
		if !ok {
			out.SetNull(row)
			return nil
		}
		shares := out.Probabilities(row)
		m.scores(x, shares)
		out.SetClass(row, argmax(shares))
		return nil
	}, nil
}

// options returns the options that Transform and Bind use.
func (m *Model) options() PredictOptions {
	return PredictOptions{PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol}
}

// Transform adds to rows the columns that Predict adds.
func (m *Model) Transform(d *engine.Dataset) *engine.Dataset {
	return Predict(d, m.Dataset(model.BuilderOf("forest.Model", d)), m.options())
}

// Dataset returns the model as a dataset of the job, like the one that Train returns.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset {
	return signature.Dataset("forest.Model", b, m.Classes, m)
}

// ModelOf returns the model that was collected under a name from the dataset that Train
// returned.
func ModelOf(result *engine.Result, name string) (*Model, error) {
	return model.Collected(result, name, Decode)
}

// Save writes the model to a file. The file is replaced atomically: after a failure it is still
// the old one.
func (m *Model) Save(path string) error { return model.Save(path, m) }

// Load reads a model from a file that Save wrote.
func Load(path string) (*Model, error) { return model.Load(path, Decode) }
