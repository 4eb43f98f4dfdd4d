package logistic

import (
	"cmp"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// PredictOptions change what Predict reads and writes.
type PredictOptions struct {
	// VectorCol, FeatureCols and OffsetCol are read in place of the columns that the model was
	// trained on; empty means those.
	VectorCol   string
	FeatureCols []string
	OffsetCol   string
	// PredictionCol names the new column of predicted classes, of the type of the labels;
	// empty means "prediction".
	PredictionCol string
	// ProbabilityCol names the new column of vectors with the probability of each class, in
	// the order of Model.Classes; empty means "probability".
	ProbabilityCol string
	// Replace puts them in the place of columns of their names, which otherwise are an error.
	Replace bool
	// Skip gives rows that hold a NaN or an infinity null in place of failing the run. Rows
	// with nulls are given null in either case.
	Skip bool
}

// Predict adds to each row the class that a model predicts and the probabilities of all
// classes, with the bits that Model.Predict, PredictProbability and their sparse forms
// give. The model is a dataset of one row, from Train or from Model.Dataset. Rows stay in
// place.
func Predict(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	named := linearmodel.PredictOptions{
		VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, OffsetCol: o.OffsetCol, PredictionCol: o.PredictionCol, Replace: o.Replace, Skip: o.Skip,
	}
	return linearmodel.PredictClass("logistic.Predict", "LogisticPredict", d, made, named, cmp.Or(o.ProbabilityCol, defaultProbability), Decode, (*Model).scores)
}

// scores returns the classes, and what gives class and probabilities of a row's margins.
func (m *Model) scores() (linearmodel.Classes, func(margins []float64) (int, []float64)) {
	room := make([]float64, len(m.Classes.Values))
	return m.Classes, func(margins []float64) (int, []float64) {
		copy(room, margins)
		return m.classAndProbabilities(room), room
	}
}

// classAndProbabilities returns the class that is predicted at the margins at the head of
// dst, and turns them into probabilities.
func (m *Model) classAndProbabilities(dst []float64) int {
	class := m.classOf(dst[:m.Margins()])
	m.probabilities(dst)
	return class
}

// classOf returns the class that is predicted at margins.
func (m *Model) classOf(margins []float64) int {
	if m.binary() {
		return m.decide(margins[0])
	}
	return largest(margins)
}

// Transform implements model.Model: it is Predict with the columns of training.
func (m *Model) Transform(d *engine.Dataset) *engine.Dataset {
	return Predict(d, m.Dataset(model.BuilderOf("logistic.Model.Transform", d)), PredictOptions{PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol})
}

// Bind implements model.Binder.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	return linearmodel.BindClass(&m.Model, l, m.Classes, m.PredictionCol, cmp.Or(m.ProbabilityCol, defaultProbability), len(m.Classes.Values), m.classAndProbabilities)
}
