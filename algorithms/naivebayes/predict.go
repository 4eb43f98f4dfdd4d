package naivebayes

import (
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// PredictOptions change what Predict reads and writes.
type PredictOptions struct {
	// VectorCol or FeatureCols name the columns to read. Empty means the columns that the model
	// was trained on.
	VectorCol   string
	FeatureCols []string
	// PredictionCol names the new column of predicted classes, of the type of the labels;
	// empty means "prediction".
	PredictionCol string
	// ProbabilityCol names the new vector column of the probability of each class, in the
	// order of Model.Classes; empty means "probability".
	ProbabilityCol string
	// Replace lets the new columns replace those of the same names, which otherwise are an
	// error.
	Replace bool
	// Skip predicts null for rows that hold a NaN or an infinity, which otherwise fail the run.
	// For rows that hold a null the prediction is null in either case.
	Skip bool
}

// Predict adds to each row the predicted class and the probabilities of all classes. They are
// those that the methods of Model return. The model is a dataset of one row, from Train or from
// Model.Dataset. Rows stay in place.
func Predict(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	const op = "naivebayes.Predict"
	if _, err := signature.ClassType(made); err != nil {
		return model.Refuse(model.BuilderOf(op, d), op, err)
	}
	return signature.Predict(op, "NaiveBayesPredict", d, made, signature.PredictOptions(o), Decode, func(m *Model) (model.Binder, Classes) {
		m.PredictionCol, m.ProbabilityCol, m.override = o.PredictionCol, o.ProbabilityCol, signature.PredictOptions(o).Override()
		return m, m.Classes
	})
}

// Bind implements model.Binder. Columns are those named by Predict, or else by training.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	names := signature.Names{Prediction: m.PredictionCol, Probability: m.ProbabilityCol}
	return m.columns.BindScorer(l, m.override, m.Dim, names, m.Classes, func(x signature.Point, probabilities []float64) float64 {
		return float64(m.probabilities(x, probabilities))
	})
}

// Transform adds the columns of Predict to rows.
func (m *Model) Transform(d *engine.Dataset) *engine.Dataset {
	return Predict(d, m.Dataset(model.BuilderOf("naivebayes.Model", d)), PredictOptions{PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol})
}

// Dataset makes the model a dataset of the job, like the one that Train returns.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset {
	return signature.Dataset("naivebayes.Model", b, m.Classes, m)
}

// ModelOf returns the model that was collected under a name from the dataset that Train
// returned.
func ModelOf(result *engine.Result, name string) (*Model, error) {
	return model.Collected(result, name, Decode)
}

// Save writes the model to a file. The file is either the old one or the whole new one.
func (m *Model) Save(path string) error { return model.Save(path, m) }

// Load reads a model that Save wrote.
func Load(path string) (*Model, error) { return model.Load(path, Decode) }
