package fm

import (
	"slices"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

var _ model.Estimator = Params{}

// Predicts implements model.Predictor.
func (p Params) Predicts() model.Prediction { return p.Task.Predicts() }

// Command implements model.Estimator.
func (Params) Command() model.Command {
	return model.Command{
		Name: "fm", About: "numbers or two classes by a factorisation machine", Curve: true, Coefficients: true,
		Flags: slices.Concat([]model.Flag{
			model.TaskFlag,
			{Name: "factors", Param: "Factors", Tag: `want:"0..65536" zero:"-1" placeholder:"N" help:"Factors of each feature; 0: none, which is a linear model (default: 8)."`},
			{Name: "l2", Param: "L2", Tag: `want:"0.." placeholder:"STRENGTH" help:"Strength of the penalty on linear weights (default: 0)."`},
			{Name: "l2-factors", Param: "L2Factors", Tag: `want:"0.." placeholder:"STRENGTH" help:"Strength of the penalty on factors (default: 0)."`},
			{Name: "no-intercept", Param: "NoIntercept", Tag: `help:"Leave the intercept out."`},
			{Name: "initial-spread", Param: "InitialSpread", Tag: `want:">0.." placeholder:"DEVIATION" help:"Standard deviation of the initial factors, which are drawn at random (default: 0.05)."`},
		}, optim.Flags),
	}
}

// Predicts implements model.Predictor.
func (m *Model) Predicts() model.Prediction {
	return m.Task.Predicts().Named(m.PredictionCol, m.ProbabilityCol, m.Classes.Values)
}

// Describe implements model.Describer.
func (m *Model) Describe(feature func(i int) string) (d model.Description) {
	d.AddCoefficients([][]float64{m.Linear}, []float64{m.Intercept}, nil, model.Chosen(m.Columns, feature))
	if len(m.Factors) > 0 {
		d.Facts = []model.Fact{{Name: "factors", Value: len(m.Factors[0])}}
	}
	return d
}
