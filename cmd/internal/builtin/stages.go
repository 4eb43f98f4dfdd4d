package builtin

import (
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
)

// stagesOf returns the models that are applied to rows one after another: the stages of a
// pipeline, or only m if m is not a pipeline.
func stagesOf(m model.Model) []model.Model {
	p, ok := m.(*pipeline.Model)
	if !ok {
		return []model.Model{m}
	}
	var all []model.Model
	for _, s := range p.Stages() {
		all = append(all, stagesOf(s)...)
	}
	return all
}

// lastOf returns the model that makes the predictions: the last stage of a pipeline, or m.
func lastOf(m model.Model) model.Model {
	all := stagesOf(m)
	return all[len(all)-1]
}

// predictionOf returns what a model predicts, or the zero value if it predicts nothing.
func predictionOf(m model.Model) model.Prediction {
	p, _ := model.PredictionOf(m)
	return p
}
