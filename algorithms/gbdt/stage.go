package gbdt

import (
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

var _ model.Stage = Params{}

// Kind returns "gbdt".
func (Params) Kind() string { return Kind }

// Fit is Train without evaluation sets, except the one of ValidationFraction.
func (p Params) Fit(rows *engine.Dataset) *engine.Dataset { return Train(rows, p) }

// Apply is Predict with the parameters' columns.
func (p Params) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return Predict(rows, m, PredictOptions{PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol})
}
