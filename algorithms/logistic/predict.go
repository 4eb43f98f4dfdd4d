package logistic

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
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
	const op = "logistic.Predict"
	prediction, err := linearmodel.LabelOutput(op, orName(o.PredictionCol, defaultPrediction), made)
	if err != nil {
		b := model.BuilderOf(op, d)
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	probability := arrow.Field{Name: orName(o.ProbabilityCol, defaultProbability), Type: batch.VariableVectorType(), Nullable: true}
	return linearmodel.Apply(op, d, made, linearmodel.Application{
		Op: "LogisticPredict", VectorCol: o.VectorCol, FeatureCols: o.FeatureCols, OffsetCol: o.OffsetCol, Skip: o.Skip, Replace: o.Replace,
		Outputs: arrowrows.Columns([]arrow.Field{prediction, probability}),
		Open: func(file []byte) (*linearmodel.Model, linearmodel.Score, error) {
			m, err := Decode(file)
			if err != nil {
				return nil, nil, err
			}
			if got := batch.TypeName(prediction.Type); got != m.Classes.Type {
				return nil, nil, fmt.Errorf("the model predicts labels of type %s, its dataset says %s", m.Classes.Type, got)
			}
			return &m.Model, m.score(), nil
		},
	})
}

// score returns what appends the predictions of a row.
func (m *Model) score() linearmodel.Score {
	room := make([]float64, len(m.Classes.Values))
	return linearmodel.ScoreClass(m.Classes, func(margins []float64) (int, []float64) {
		copy(room, margins)
		return m.classAndProbabilities(room), room
	})
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
	b := model.BuilderOf("logistic.Model.Transform", d)
	return Predict(d, m.Dataset(b), PredictOptions{PredictionCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol})
}

// Bind implements model.Binder.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	return linearmodel.BindClass(&m.Model, l, m.Classes, orName(m.PredictionCol, defaultPrediction), orName(m.ProbabilityCol, defaultProbability),
		len(m.Classes.Values), m.classAndProbabilities)
}
