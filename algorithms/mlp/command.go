package mlp

import (
	"slices"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

var _ model.Estimator = Params{}

// Predicts implements model.Predictor.
func (p Params) Predicts() model.Prediction { return p.Task.Predicts() }

// Command implements model.Estimator.
func (Params) Command() model.Command {
	return model.Command{
		Name: "mlp", About: "numbers or classes by a multilayer perceptron", Curve: true,
		Flags: slices.Concat([]model.Flag{
			model.TaskFlag,
			{Name: "hidden", Param: "Hidden", Tag: `want:"1..1048576" placeholder:"UNITS" help:"Units of the hidden layers, in order (default: one layer of 32)."`},
			{Name: "activation", Param: "Activation", Tag: `placeholder:"NAME" help:"Activation function of the hidden units: relu (the default), tanh or logistic." default:"relu"`},
			{Name: "l2", Param: "L2", Tag: `want:"0.." placeholder:"STRENGTH" help:"Strength of the penalty on weights (default: 0)."`},
			{Name: "no-standardize", Param: "NoStandardize", Tag: `help:"Do not subtract the means of features and divide by their standard deviations."`},
		}, optim.Flags),
	}
}

// Predicts implements model.Predictor.
func (m *Model) Predicts() model.Prediction {
	return m.Task.Predicts().Named(m.PredictionCol, m.ProbabilityCol, m.Classes.Values)
}

// Describe implements model.Describer.
func (m *Model) Describe(func(i int) string) model.Description {
	t := model.Table{Title: "layers", Columns: []string{"layer", "units", "inputs"}}
	for i, l := range m.Layers {
		t.Rows = append(t.Rows, []any{strconv.Itoa(i + 1), float64(len(l.Biases)), float64(len(l.Weights))})
	}
	return model.Description{Facts: []model.Fact{{Name: "activation", Value: m.Activation.String()}}, Tables: []model.Table{t}}
}
