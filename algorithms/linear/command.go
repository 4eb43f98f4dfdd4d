package linear

import (
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

var _ model.Estimator = Params{}

// Predicts implements model.Predictor.
func (p Params) Predicts() model.Prediction { return model.Prediction{Column: linearmodel.Prediction} }

// Command implements model.Estimator.
func (p Params) Command() model.Command {
	return model.Command{
		Name: "linear", About: "numbers by linear regression: least squares, ridge, lasso, elastic net, Huber", Curve: true, Coefficients: true,
		Flags: slices.Concat(linearmodel.PenaltyFlags, optim.Flags, []model.Flag{
			optim.StepFlag,
			{Name: "huber", Param: "Huber", Tag: `want:">0.." placeholder:"RESIDUAL" help:"Make the loss linear in residuals beyond this, so that outliers count for less (default: squares throughout)."`},
			{Name: "no-inference", Param: "NoInference", Tag: `help:"Leave out standard errors, t and p values, which take one more read of the rows."`},
		}),
	}
}

// Predicts implements model.Predictor.
func (m *Model) Predicts() model.Prediction {
	return Params{}.Predicts().Named(m.PredictionCol, "", nil)
}
