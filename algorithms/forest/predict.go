package forest

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// PredictOptions has options for the columns that Predict reads and writes.
type PredictOptions struct {
	// VectorCol or FeatureCols name the columns to read. If both are empty, the columns that
	// the model was trained on are read.
	VectorCol   string
	FeatureCols []string
	// PredictionCol names the new column of predictions: numbers, or classes of the type of the
	// labels; empty means "prediction".
	PredictionCol string
	// ProbabilityCol names the new vector column of the probability of each class, in the order
	// of Model.Classes; empty means "probability". A regression does not add this column.
	ProbabilityCol string
	// Replace allows the new columns to replace columns of the same names. Without Replace,
	// existing columns of these names are an error.
	Replace bool
}

// common returns the options that all estimators of labels have.
func (o PredictOptions) common() model.PredictOptions {
	return model.PredictOptions{VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, PredictionCol: o.PredictionCol, ProbabilityCol: o.ProbabilityCol, Replace: o.Replace}
}

// Predict adds a model's prediction to each row and, for classes, the probabilities of all
// classes. Predictions and probabilities equal those that the methods of Model return. A row
// whose vector is null gets nulls. made is a dataset of one row with the model, from Train or
// Model.Dataset. Rows stay in their shards and in their order.
func Predict(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	return o.apply("forest.Predict", "ForestPredict", d, made, func(p *batches) (model.PlacedCompute, error) { return p.compute, nil })
}

// apply adds the operator op, which applies a model to d. open returns the function that
// computes the new columns of a batch.
func (o PredictOptions) apply(caller, op string, d, made *engine.Dataset, open func(p *batches) (model.PlacedCompute, error)) *engine.Dataset {
	is := func(m *Model) (Classes, string) { return m.Classes, fmt.Sprintf("the model is a %v", m.Task) }
	return signature.PredictBatches(caller, op, d, made, o.common(), nil, Decode, is, func(m *Model, rows engine.Schema, outputs []arrow.Field) (model.PlacedCompute, error) {
		p, err := newBatches(m, o, rows, outputs)
		if err != nil {
			return nil, err
		}
		return open(p)
	})
}

// reader finds the columns of the features in the layout l. Text that is not one of the
// categories is read as −1.
func (m *Model) reader(l *model.Layout, o PredictOptions) (*signature.Reader, error) {
	m.prepare()
	return m.inputs.BindCoded(l, o.common(), m.Dim, &signature.Coded{Codes: signature.CodesOf(m.Trees.Categories), Unseen: -1, Strict: true})
}

// Bind implements model.Binder. It uses the column names that were set for training.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	o := m.options()
	in, err := m.reader(l, o)
	if err != nil {
		return nil, err
	}
	return in.Step(l, signature.Names{Prediction: o.PredictionCol, Probability: o.ProbabilityCol}, m.Classes, m.score)
}

// score returns the prediction for x and, for classes, writes their probabilities to shares. It
// has the type signature.Scorer.
func (m *Model) score(x signature.Point, shares []float64) float64 {
	if shares == nil {
		return m.predict(x)
	}
	m.scores(x, shares)
	return float64(kernel.Argmax(shares))
}

// options returns the options that Transform and Bind use.
func (m *Model) options() PredictOptions {
	return PredictOptions{PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol}
}

// Transform adds to rows the columns that Predict adds.
func (m *Model) Transform(d *engine.Dataset) *engine.Dataset {
	return Predict(d, m.Dataset(model.BuilderOf("forest.Model", d)), m.options())
}

// Dataset returns the model as a dataset of the job, like the dataset that Train returns. So a
// saved model can be passed to Predict.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset {
	return signature.Dataset("forest.Model", b, m.Classes, m)
}

// ModelOf returns the model that was collected under the given name. The collected dataset must
// be the dataset that Train returned.
func ModelOf(result *engine.Result, name string) (*Model, error) {
	return model.Collected(result, name, Decode)
}

// Save writes the model to the file path. An existing file is replaced atomically: after a
// failure it still has the old contents.
func (m *Model) Save(path string) error { return model.Save(path, m) }

// Load reads a model that Save wrote.
func Load(path string) (*Model, error) { return model.Load(path, Decode) }
