package logistic

import (
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

var _ model.Estimator = Params{}

// Predicts implements model.Predictor.
func (p Params) Predicts() model.Prediction {
	return model.Prediction{Target: model.Class, Column: linearmodel.Prediction, Scores: defaultProbability, Threshold: p.Threshold}
}

// Command implements model.Estimator.
func (p Params) Command() model.Command {
	return model.Command{
		Name: "logistic", About: "classes by logistic regression, of two or more", Curve: true, Coefficients: true,
		Flags: slices.Concat(linearmodel.PenaltyFlags, optim.Flags, []model.Flag{
			optim.StepFlag,
			{Name: "family", Param: "Family", Tag: `placeholder:"NAME" help:"Model of the classes: binary, multinomial, or auto (the default), which decides by the number of classes." default:"auto"`},
		}, model.ClassWeightFlags, []model.Flag{
			{Name: "inference", Param: "Inference", Tag: `help:"Add standard errors, z and p values to the coefficients: for two classes, without a penalty."`},
			{Name: "threshold", Param: "Threshold", Tag: `want:">0..<1" placeholder:"PROBABILITY" help:"Probability above which the second of two classes is predicted (default: 0.5)."`},
		}),
	}
}

// Predicts implements model.Predictor.
func (m *Model) Predicts() model.Prediction {
	return Params{Threshold: m.Threshold}.Predicts().Named(m.PredictionCol, m.ProbabilityCol, m.Classes.Values)
}

// Describe implements model.Describer.
func (m *Model) Describe(feature func(i int) string) model.Description {
	return m.DescribeClasses(m.Classes.Values, feature)
}
