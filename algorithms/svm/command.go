package svm

import (
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

var _, _ model.Estimator = LinearSVC{}, LinearSVR{}

// Predicts implements model.Predictor.
func (p LinearSVC) Predicts() model.Prediction {
	return model.Prediction{Target: model.Class, Column: linearmodel.Prediction, Scores: defaultDecision, Margins: true}
}

// Predicts implements model.Predictor.
func (p LinearSVR) Predicts() model.Prediction {
	return model.Prediction{Column: linearmodel.Prediction}
}

var gapFlag = model.Flag{Name: "gap-tol", Param: "GapTol", Tag: `want:">0.." of:"!squared,method!=sgd" placeholder:"SHARE" help:"Without --squared, training ends when the objective is at most this share above a lower bound of its minimum (default: 0.000001)."`}

// Command implements model.Estimator.
func (p LinearSVC) Command() model.Command {
	return model.Command{
		Name: "svc", About: "classes by linear support vectors", Curve: true, Coefficients: true,
		Flags: slices.Concat([]model.Flag{
			{Name: "l1", Param: "L1", Tag: `want:"0.." placeholder:"STRENGTH" help:"Strength of the lasso penalty; needs --squared (default: 0)."`},
			{Name: "l2", Param: "L2", Tag: `want:"0.." placeholder:"STRENGTH" help:"Strength of the ridge penalty (default: 0.01 if there is no other)."`},
			linearmodel.NoStandardizeFlag, linearmodel.NoInterceptFlag,
			{Name: "squared", Param: "Squared", Tag: `help:"Square the hinge loss."`},
		}, model.ClassWeightFlags, []model.Flag{gapFlag}, optim.Flags, []model.Flag{optim.StepFlag}),
	}
}

// Command implements model.Estimator.
func (p LinearSVR) Command() model.Command {
	return model.Command{
		Name: "svr", About: "numbers by linear support vectors", Curve: true, Coefficients: true,
		Flags: slices.Concat(linearmodel.PenaltyFlags, optim.Flags, []model.Flag{
			optim.StepFlag, gapFlag,
			{Name: "epsilon", Param: "Epsilon", Tag: `want:"0.." placeholder:"DISTANCE" help:"How far a prediction may be from the label without a loss (default: 0)."`},
			{Name: "squared", Param: "Squared", Tag: `help:"Square the loss."`},
		}),
	}
}

// Predicts implements model.Predictor.
func (m *SVCModel) Predicts() model.Prediction {
	return LinearSVC{}.Predicts().Named(m.PredictionCol, m.DecisionCol, m.Classes.Values)
}

// Predicts implements model.Predictor.
func (m *SVRModel) Predicts() model.Prediction {
	return LinearSVR{}.Predicts().Named(m.PredictionCol, "", nil)
}

// Describe implements model.Describer.
func (m *SVCModel) Describe(feature func(i int) string) model.Description {
	return m.DescribeClasses(m.Classes.Values, feature)
}
