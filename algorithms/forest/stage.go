package forest

import "github.com/superstep-ml/superstep/engine"

// Kind returns "forest".
func (Params) Kind() string { return Kind }

// Fit calls Train.
func (p Params) Fit(rows *engine.Dataset) *engine.Dataset { return Train(rows, p) }

// Apply calls Predict with the column names in p.
func (p Params) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return Predict(rows, m, PredictOptions{PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol})
}
