package mlp

import (
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// PredictOptions are options of Predict.
type PredictOptions = model.PredictOptions

// Predict adds the prediction to each row and, for a classification, the probabilities of all
// classes. Predictions and probabilities equal those that the methods of Model return. made is
// the model as a dataset of one row, from Train or from Model.Dataset. Rows are not moved
// between subtasks.
func Predict(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	return signature.Predict("mlp.Predict", "MLPPredict", d, made, o, Decode, func(m *Model) (model.Binder, Classes) {
		m.PredictionCol, m.ProbabilityCol, m.options = o.PredictionCol, o.ProbabilityCol, o
		return m, m.Classes
	})
}

// Bind implements model.Binder. The step reads the columns that the options of Predict name, or
// else the columns of the training.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	names := signature.Names{Prediction: m.PredictionCol, Probability: m.ProbabilityCol}
	return m.columns.BindScorer(l, m.options, m.Dim, names, m.Classes, m.score)
}

// Transform implements model.Model. It calls Predict with the columns of training.
func (m *Model) Transform(d *engine.Dataset) *engine.Dataset {
	return Predict(d, m.Dataset(model.BuilderOf("mlp.Model", d)), PredictOptions{PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol})
}

// Dataset returns the model as a dataset of the job, like the dataset that Train returns. So a
// saved model can be passed to Predict.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset {
	return signature.Dataset("mlp.Model", b, m.Classes, m)
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
