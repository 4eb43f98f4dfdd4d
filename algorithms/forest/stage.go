package forest

import "github.com/superstep-ml/superstep/engine"

// Kind returns "forest".
func (Params) Kind() string { return Kind }

// Fit is Train.
func (p Params) Fit(rows *engine.Dataset) *engine.Dataset { return Train(rows, p) }

// Apply is Predict with the parameters' columns.
func (p Params) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return Predict(rows, m, PredictOptions{PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol})
}
