package builtin

import (
	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/algorithms/fm"
	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/mlp"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/svm"
)

// SVCTrain are the flags of training support vectors for classes.
type SVCTrain struct {
	TrainArgs
	L1            float64        `want:"0.." name:"l1" placeholder:"STRENGTH" help:"Strength of the lasso penalty; needs --squared (default: 0)."`
	L2            float64        `want:"0.." name:"l2" placeholder:"STRENGTH" help:"Strength of the ridge penalty (default: 0.01 if there is no other)."`
	NoStandardize bool           `help:"Put the penalty on coefficients of the features as they are, not divided by their deviations."`
	NoIntercept   bool           `help:"Leave the intercept out."`
	Squared       bool           `help:"Square the hinge loss."`
	ClassWeights  pairs[float64] `want:">0.." placeholder:"CLASS=WEIGHT" help:"Factors of the weights of the rows of classes, such as yes=2;no=1."`
	Balanced      bool           `help:"Make all classes weigh the same."`
	GapTol        float64        `want:">0.." of:"!squared,method!=sgd" placeholder:"SHARE" help:"Without --squared training ends when the objective is at most this share above a lower bound of its minimum (default: 0.000001)."`
	OptimiserArgs
	StepArgs
}

func (SVCTrain) goal() goal { return classesGoal }

// Validate refuses what cannot be meant.
func (a SVCTrain) Validate(k *kong.Context) error { return refuse(k, a.validate(a.goal(), a.stage)) }

func (a SVCTrain) stage(c columns) model.Stage {
	return svm.LinearSVC{VectorCol: c.vector, FeatureCols: c.features, LabelCol: c.label, PredictionCol: c.prediction, DecisionCol: c.probability, WeightCol: c.weight, Skip: c.skip,
		L1: a.L1, L2: a.L2, NoStandardize: a.NoStandardize, NoIntercept: a.NoIntercept, Squared: a.Squared,
		ClassWeights: a.ClassWeights, Balanced: a.Balanced,
		Method: a.method(), MaxIter: a.MaxIter, Tol: a.Tol, GapTol: a.GapTol, LossTol: a.LossTol, StepTol: a.StepTol, Stochastic: a.stochastic()}
}

// SVRTrain are the flags of training support vectors for numbers.
type SVRTrain struct {
	TrainArgs
	PenaltyArgs
	OptimiserArgs
	StepArgs
	GapTol  float64 `want:">0.." of:"!squared,method!=sgd" placeholder:"SHARE" help:"Without --squared training ends when the objective is at most this share above a lower bound of its minimum (default: 0.000001)."`
	Epsilon float64 `want:"0.." placeholder:"DISTANCE" help:"How far a prediction may be from the label without a loss (default: 0)."`
	Squared bool    `help:"Square the loss."`
}

func (SVRTrain) goal() goal { return numbersGoal }

// Validate refuses what cannot be meant.
func (a SVRTrain) Validate(k *kong.Context) error { return refuse(k, a.validate(a.goal(), a.stage)) }

func (a SVRTrain) stage(c columns) model.Stage {
	return svm.LinearSVR{VectorCol: c.vector, FeatureCols: c.features, LabelCol: c.label, PredictionCol: c.prediction, WeightCol: c.weight, Skip: c.skip,
		L1: a.L1, L2: a.L2, NoStandardize: a.NoStandardize, NoIntercept: a.NoIntercept, OffsetCol: a.Offset,
		Epsilon: a.Epsilon, Squared: a.Squared,
		Method: a.method(), MaxIter: a.MaxIter, Tol: a.Tol, GapTol: a.GapTol, LossTol: a.LossTol, StepTol: a.StepTol, Stochastic: a.stochastic()}
}

// GLMTrain are the flags of training generalised linear models.
type GLMTrain struct {
	TrainArgs
	PenaltyArgs
	OptimiserArgs
	StepArgs
	NoInference bool       `help:"Leave out standard errors, statistics and p values, which take one more read of the rows."`
	Family      glm.Family `placeholder:"FAMILY" help:"Distribution of the label: gaussian (the default), binomial, poisson, gamma or tweedie." default:"gaussian"`
	Link        glm.Link   `placeholder:"LINK" help:"What of the mean is linear, such as identity, log or logit (default: what suits the family)." default:"auto"`
	Power       float64    `want:">1..<2|>2.." of:"family=tweedie" placeholder:"POWER" help:"Of tweedie: the power of the mean that the variance is in proportion to (default: 1.5)."`
}

func (GLMTrain) goal() goal { return numbersGoal }

// Validate refuses what cannot be meant.
func (a GLMTrain) Validate(k *kong.Context) error { return refuse(k, a.validate(a.goal(), a.stage)) }

func (a GLMTrain) stage(c columns) model.Stage {
	return glm.Params{VectorCol: c.vector, FeatureCols: c.features, LabelCol: c.label, PredictionCol: c.prediction, WeightCol: c.weight, Skip: c.skip,
		L1: a.L1, L2: a.L2, NoStandardize: a.NoStandardize, NoIntercept: a.NoIntercept, OffsetCol: a.Offset,
		Family: a.Family, Link: a.Link, Power: a.Power, NoInference: a.NoInference,
		Method: a.method(), MaxIter: a.MaxIter, Tol: a.Tol, LossTol: a.LossTol, StepTol: a.StepTol, Stochastic: a.stochastic()}
}

// TaskArgs say what an algorithm predicts that can do either.
type TaskArgs struct {
	Task string `required:"" enum:"regression,classification" placeholder:"TASK" help:"What is predicted: regression, numbers, or classification."`
}

func (a TaskArgs) goal() goal {
	if a.Task == "classification" {
		return classesGoal
	}
	return numbersGoal
}

// FMTrain are the flags of training factorisation machines.
type FMTrain struct {
	TrainArgs
	TaskArgs
	Factors     int     `want:"0..65536" zero:"-1" placeholder:"N" help:"Factors of each feature; 0: none, which is a linear model (default: 8)."`
	L2          float64 `want:"0.." name:"l2" placeholder:"STRENGTH" help:"Strength of the penalty on linear weights (default: 0)."`
	L2Factors   float64 `want:"0.." name:"l2-factors" placeholder:"STRENGTH" help:"Strength of the penalty on factors (default: 0)."`
	NoIntercept bool    `help:"Leave the intercept out."`

	InitialSpread float64 `want:">0.." placeholder:"DEVIATION" help:"Deviation of the first factors, which are drawn (default: 0.05)."`
	OptimiserArgs
}

// Validate refuses what cannot be meant.
func (a FMTrain) Validate(k *kong.Context) error { return refuse(k, a.validate(a.goal(), a.stage)) }

func (a FMTrain) stage(c columns) model.Stage {
	p := fm.Params{VectorCol: c.vector, FeatureCols: c.features, LabelCol: c.label, PredictionCol: c.prediction, ProbabilityCol: c.probability, WeightCol: c.weight, Skip: c.skip,
		Factors: a.Factors, L2: a.L2, L2Factors: a.L2Factors, NoIntercept: a.NoIntercept, InitialSpread: a.InitialSpread,
		Method: a.method(), MaxIter: a.MaxIter, Tol: a.Tol, LossTol: a.LossTol, Stochastic: a.stochastic()}
	if a.goal() == classesGoal {
		p.Task = fm.Classification
	}
	return p
}

// MLPTrain are the flags of training multilayer perceptrons.
type MLPTrain struct {
	TrainArgs
	TaskArgs
	Hidden     []int          `want:"1..1048576" placeholder:"UNITS" help:"Units of the hidden layers, in order (default: one layer of 32)."`
	Activation mlp.Activation `placeholder:"NAME" help:"What hidden units make of their sums: relu (the default), tanh or logistic." default:"relu"`
	L2         float64        `want:"0.." name:"l2" placeholder:"STRENGTH" help:"Strength of the penalty on weights (default: 0)."`

	NoStandardize bool `help:"Take features as they are, not less their means and divided by their deviations."`
	OptimiserArgs
}

// Validate refuses what cannot be meant.
func (a MLPTrain) Validate(k *kong.Context) error { return refuse(k, a.validate(a.goal(), a.stage)) }

func (a MLPTrain) stage(c columns) model.Stage {
	p := mlp.Params{VectorCol: c.vector, FeatureCols: c.features, LabelCol: c.label, PredictionCol: c.prediction, ProbabilityCol: c.probability, WeightCol: c.weight, Skip: c.skip,
		Hidden: a.Hidden, Activation: a.Activation, L2: a.L2, NoStandardize: a.NoStandardize,
		Method: a.method(), MaxIter: a.MaxIter, Tol: a.Tol, LossTol: a.LossTol, Stochastic: a.stochastic()}
	if a.goal() == classesGoal {
		p.Task = mlp.Classification
	}
	return p
}
