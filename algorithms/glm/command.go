package glm

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
		Name: "glm", About: "means by generalised linear models: Gaussian, binomial, Poisson, gamma, Tweedie", Curve: true, Coefficients: true,
		Flags: slices.Concat(linearmodel.PenaltyFlags, optim.Flags, []model.Flag{
			optim.StepFlag,
			{Name: "no-inference", Param: "NoInference", Tag: `help:"Leave out standard errors, statistics and p values, which take one more read of the rows."`},
			{Name: "family", Param: "Family", Tag: `placeholder:"FAMILY" help:"Distribution of the label: gaussian (the default), binomial, poisson, gamma or tweedie." default:"gaussian"`},
			{Name: "link", Param: "Link", Tag: `placeholder:"LINK" help:"Function of the mean that is linear in the features, such as identity, log or logit (default: what suits the family)." default:"auto"`},
			{Name: "power", Param: "Power", Tag: `want:">1..<2|>2.." of:"family=tweedie" placeholder:"POWER" help:"Of tweedie: the power of the mean that the variance is in proportion to (default: 1.5)."`},
		}),
	}
}

// Predicts implements model.Predictor.
func (m *Model) Predicts() model.Prediction {
	return Params{}.Predicts().Named(m.PredictionCol, "", nil)
}

// Describe implements model.Describer.
func (m *Model) Describe(feature func(i int) string) model.Description {
	d := m.Model.Describe(feature)
	d.Settings = []model.Fact{{Name: "family", Value: m.Family.String()}, {Name: "link", Value: m.Link.String()}}
	return d
}
