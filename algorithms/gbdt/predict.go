package gbdt

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// PredictOptions change what Predict reads and writes.
type PredictOptions struct {
	// VectorCol or FeatureCols are read in place of the columns of the training; empty means
	// the columns of the training.
	VectorCol   string
	FeatureCols []string
	// PredictionCol names the new column of predictions: numbers, or classes with the type of
	// the labels. Empty means "prediction".
	PredictionCol string
	// ProbabilityCol names the new vector column of the probability of each class, in the
	// order of Model.Classes; empty means "probability". A regression adds none.
	ProbabilityCol string
	// MarginCol, LeafCol and ContributionCol name further vector columns; an empty name adds
	// none. MarginCol has the margin of each output. LeafCol has, for each tree, the number of
	// the node in which the row ends. ContributionCol has the values of Model.Contribute.
	MarginCol, LeafCol, ContributionCol string
	// Replace replaces existing columns of the same names; otherwise they are an error.
	Replace bool
}

// common returns the options that all estimators of labels have.
func (o PredictOptions) common() signature.PredictOptions {
	return signature.PredictOptions{VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, PredictionCol: o.PredictionCol, ProbabilityCol: o.ProbabilityCol, Replace: o.Replace}
}

// Predict adds to each row the prediction of a model and, for classes, the probabilities of all
// classes, with the bits that the methods of Model give. Features that are null or NaN are
// missing values, which trees accept. A row whose vector is null gets null. The model is a
// dataset of one row, from Train or from Model.Dataset. Rows stay in place.
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

// Bind implements model.Binder, with the column names that training set.
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

// options returns the options of a model that is applied without any.
func (m *Model) options() PredictOptions {
	return PredictOptions{PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol}
}

// Transform adds the columns of Predict to rows.
func (m *Model) Transform(d *engine.Dataset) *engine.Dataset {
	return Predict(d, m.Dataset(model.BuilderOf("gbdt.Model", d)), m.options())
}

// Dataset makes the model a dataset of the job, like the one that Train returns.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset {
	return signature.Dataset("gbdt.Model", b, m.Classes, m)
}

// ModelOf returns the model that was collected under a name from the dataset that Train
// returned.
func ModelOf(result *engine.Result, name string) (*Model, error) {
	return model.Collected(result, name, Decode)
}

// Save writes the model to a file, atomically: after a failure the old file is still there.
func (m *Model) Save(path string) error { return model.Save(path, m) }

// Load reads a model that Save wrote.
func Load(path string) (*Model, error) { return model.Load(path, Decode) }
