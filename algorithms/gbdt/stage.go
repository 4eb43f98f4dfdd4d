package gbdt

import (
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

var _ model.Stage = Params{}

// Kind returns "gbdt".
func (Params) Kind() string { return Kind }

// Fit calls Train without evaluation sets. ValidationFraction may still hold rows out as such a
// set.
func (p Params) Fit(rows *engine.Dataset) *engine.Dataset { return Train(rows, p) }

// Apply calls Predict with the column names in p.
func (p Params) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return Predict(rows, m, PredictOptions{PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol})
}
