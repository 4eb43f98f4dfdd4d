package gbdt

import (
	"cmp"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// PredictOptions has options for the columns that Predict reads and writes.
type PredictOptions struct {
	// VectorCol or FeatureCols name the columns that are read in place of those of the
	// training. If both are empty, the columns of the training are read.
	VectorCol   string
	FeatureCols []string
	// PredictionCol names the new column of predictions: numbers, or classes with the type of
	// the labels. Empty means "prediction".
	PredictionCol string
	// ProbabilityCol names the new vector column of the probability of each class, in the order
	// of Model.Classes; empty means "probability". A regression adds no such column.
	ProbabilityCol string
	// MarginCol, LeafCol and ContributionCol name further vector columns; an empty name adds no
	// column. MarginCol has the margin of each output. LeafCol has, for each tree, the number
	// of the node in which the row ends. ContributionCol has the values of Model.Contribute.
	MarginCol, LeafCol, ContributionCol string
	// If Replace is true, existing columns with the names of new ones are replaced; otherwise
	// they are an error.
	Replace bool
}

func (o PredictOptions) prediction() string  { return cmp.Or(o.PredictionCol, "prediction") }
func (o PredictOptions) probability() string { return cmp.Or(o.ProbabilityCol, "probability") }

// features returns the columns that are read in place of those of the training.
func (o PredictOptions) features() signature.Override {
	return signature.Override{VectorCol: o.VectorCol, FeatureCols: o.FeatureCols}
}

// Predict adds to each row the prediction of a model and, for classes, the probabilities of all
// classes. Both have the same bits as the results of the methods of Model. Features that are
// null or NaN are missing values, which trees accept. A row whose vector is null gets null.
// made is a dataset of one row with the model, from Train or Model.Dataset. Rows stay in their
// shards and in their order.
func Predict(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	const op = "gbdt.Predict"
	b := model.BuilderOf(op, d)
	label := signature.LabelType(made)
	if err := o.features().Check(); err != nil {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	outputs := signature.Outputs(label, o.prediction(), o.probability())
	for _, name := range []string{o.MarginCol, o.LeafCol, o.ContributionCol} {
		if name != "" {
			outputs = append(outputs, arrow.Field{Name: name, Type: batch.VariableVectorType(), Nullable: true})
		}
	}
	return model.Apply(op, d, made, model.Application{
		Op: "GBDTPredict", Replace: o.Replace,
		Attrs:   []engine.Attr{{Key: "prediction", Value: o.prediction()}},
		Outputs: arrowrows.Columns(outputs),
		Open: func(file []byte, schema engine.Schema) (model.Compute, error) {
			m, err := Decode(file)
			if err == nil {
				err = m.Classes.MatchDataset(label, fmt.Sprintf("the objective of the model is %v", m.Objective))
			}
			if err != nil {
				return nil, err
			}
			p := &batches{m: m, o: o}
			p.Batches, err = signature.NewBatches(schema, outputs, func(l *model.Layout) (*signature.Reader, error) { return m.reader(l, o) })
			return p.compute, err
		},
	})
}

// Bind implements model.Binder. It uses the column names that were set for training.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	in, err := m.reader(l, PredictOptions{})
	if err != nil {
		return nil, err
	}
	out, err := m.bindPredicted(l)
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
		r := m.take()
		defer m.give(r)
		m.fill(x, r.x)
		m.scorer.Scores(r.x, r.margins)
		if !m.Objective.classes() {
			out.SetNumber(row, m.decide(r.margins))
			return nil
		}
		out.SetClass(row, int(m.decide(r.margins)))
		m.probabilities(r.margins, out.Probabilities(row))
		return nil
	}, nil
}

// bindPredicted adds the cells of the prediction columns to the layout.
func (m *Model) bindPredicted(l *model.Layout) (*signature.Predicted, error) {
	names := signature.Names{Prediction: m.PredictionCol, Probability: m.ProbabilityCol}
	if m.Objective.classes() {
		return names.BindClasses(l, m.Classes)
	}
	return names.BindNumber(l), nil
}

// options returns the options for applying the model if the caller gives none.
func (m *Model) options() PredictOptions {
	return PredictOptions{PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol}
}

// Transform adds to rows the columns that Predict adds.
func (m *Model) Transform(d *engine.Dataset) *engine.Dataset {
	return Predict(d, m.Dataset(model.BuilderOf("gbdt.Model", d)), m.options())
}

// Dataset returns the model as a dataset of the job, like the one that Train returns.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset {
	return signature.Dataset("gbdt.Model", b, m.Classes, m)
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
