package gbdt

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
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
	// MarginCol, LeafCol and ContributionCol name further vector columns; an empty name adds no
	// column. MarginCol has the margin of each output. LeafCol has, for each tree, the number
	// of the node in which the row ends. ContributionCol has the values of Model.Contribute.
	MarginCol, LeafCol, ContributionCol string
	// Replace allows the new columns to replace columns of the same names. Without Replace,
	// existing columns of these names are an error.
	Replace bool
}

// common returns the options that all estimators of labels have.
func (o PredictOptions) common() model.PredictOptions {
	return model.PredictOptions{VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, PredictionCol: o.PredictionCol, ProbabilityCol: o.ProbabilityCol, Replace: o.Replace}
}

// Predict adds to each row the prediction of a model and, for classes, the probabilities of all
// classes. Both have the same bits as the results of the methods of Model. Features that are
// null or NaN are missing values, which trees accept. A row whose vector is null gets null.
// made is a dataset of one row with the model, from Train or Model.Dataset. Rows stay in their
// shards and in their order.
func Predict(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	is := func(m *Model) (Classes, string) {
		return m.Classes, fmt.Sprintf("the objective of the model is %v", m.Objective)
	}
	further := []string{o.MarginCol, o.LeafCol, o.ContributionCol}
	return signature.PredictBatches("gbdt.Predict", "GBDTPredict", d, made, o.common(), further, Decode, is, func(m *Model, rows engine.Schema, outputs []arrow.Field) (_ model.PlacedCompute, err error) {
		p := &batches{m: m, o: o}
		p.Batches, err = signature.NewBatches(rows, outputs, func(l *model.Layout) (*signature.Reader, error) { return m.reader(l, o) })
		return p.compute, err
	})
}

// Bind implements model.Binder. It uses the column names that were set for training.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	o := m.options()
	in, err := m.reader(l, o)
	if err != nil {
		return nil, err
	}
	return in.Step(l, signature.Names{Prediction: o.PredictionCol, Probability: o.ProbabilityCol}, m.Classes, m.predictTo)
}

// predictTo returns the prediction for a point that fits, and writes the probabilities of
// classes to dst unless it is nil.
func (m *Model) predictTo(p signature.Point, dst []float64) float64 {
	r := m.take()
	defer m.give(r)
	m.fill(p, r.x)
	m.scorer.Scores(r.x, r.margins)
	if dst != nil {
		m.probabilities(r.margins, dst)
	}
	return m.decide(r.margins)
}

// options returns the options for applying the model if the caller gives none.
func (m *Model) options() PredictOptions {
	return PredictOptions{PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol}
}

// Transform adds to rows the columns that Predict adds.
func (m *Model) Transform(d *engine.Dataset) *engine.Dataset {
	return Predict(d, m.Dataset(model.BuilderOf("gbdt.Model", d)), m.options())
}

// Dataset returns the model as a dataset of the job, like the dataset that Train returns. So a
// saved model can be passed to Predict.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset {
	return signature.Dataset("gbdt.Model", b, m.Classes, m)
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
