package logistic

import (
	"cmp"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// PredictOptions are options of Predict.
type PredictOptions struct {
	// VectorCol or FeatureCols name the columns of the features, and OffsetCol names the column
	// of the offsets. Where names are empty, the columns that the model was trained on are
	// read.
	VectorCol   string
	FeatureCols []string
	OffsetCol   string
	// PredictionCol names the new column of predicted classes, of the type of the labels;
	// empty means "prediction".
	PredictionCol string
	// ProbabilityCol names the new vector column of the probability of each class, in the order
	// of Model.Classes; empty means "probability".
	ProbabilityCol string
	// Replace allows the new columns to replace columns of the same names. Without Replace,
	// existing columns of these names are an error.
	Replace bool
	// With Skip, the prediction is null for rows that contain a NaN or an infinity; without
	// Skip such a row is an error. For rows that contain a null the prediction is null with and
	// without Skip.
	Skip bool
}

// Predict adds to each row the predicted class and the probabilities of all classes, with the
// same bits as Model.Predict, Model.PredictProbability and the variants of these methods for
// sparse rows. made is the model as a dataset of one row, from Train or from Model.Dataset.
// Rows are not moved between subtasks.
func Predict(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	named := model.LinearPredictOptions{
		VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, OffsetCol: o.OffsetCol, PredictionCol: o.PredictionCol, Replace: o.Replace, Skip: o.Skip,
	}
	return linearmodel.PredictClass("logistic.Predict", "LogisticPredict", d, made, named, cmp.Or(o.ProbabilityCol, defaultProbability), Decode, (*Model).scores)
}

// scores returns the classes, and a function that takes a row's margins and returns its class
// and probabilities.
func (m *Model) scores() (linearmodel.Classes, func(margins []float64) (int, []float64)) {
	room := make([]float64, len(m.Classes.Values))
	return m.Classes, func(margins []float64) (int, []float64) {
		copy(room, margins)
		return m.classAndProbabilities(room), room
	}
}

// classAndProbabilities returns the class that is predicted from the margins, which are the
// first elements of dst. It overwrites dst with the probabilities of all classes.
func (m *Model) classAndProbabilities(dst []float64) int {
	class := m.classOf(dst[:m.Margins()])
	m.probabilities(dst)
	return class
}

// classOf returns the class that is predicted from margins.
func (m *Model) classOf(margins []float64) int {
	if m.binary() {
		return m.decide(margins[0])
	}
	return largest(margins)
}

// Transform implements model.Model. It calls Predict with the columns of training.
func (m *Model) Transform(d *engine.Dataset) *engine.Dataset {
	return Predict(d, m.Dataset(model.BuilderOf("logistic.Model.Transform", d)), PredictOptions{PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol})
}

// Bind implements model.Binder.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	return linearmodel.BindClass(&m.Model, l, m.Classes, m.PredictionCol, cmp.Or(m.ProbabilityCol, defaultProbability), len(m.Classes.Values), m.classAndProbabilities)
}
