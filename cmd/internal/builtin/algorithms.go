package builtin

import (
	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/gmm"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// algorithms are what `superstep train` can train. One more is its flags, a line here, one
// in kindsOf, and a case where portraits of models are made.
var algorithms = []program{
	training[KMeansTrain]("kmeans", "clusters around k centres"),
	training[GMMTrain]("gmm", "clusters as a mixture of k Gaussian distributions"),
	training[LinearTrain]("linear", "numbers by linear regression: least squares, ridge, lasso, elastic net, Huber"),
	training[LogisticTrain]("logistic", "classes by logistic regression, of two or more"),
	training[NaiveBayesTrain]("naivebayes", "classes by naive Bayes"),
	training[SVCTrain]("svc", "classes by linear support vectors"),
	training[SVRTrain]("svr", "numbers by linear support vectors"),
	training[FMTrain]("fm", "numbers or two classes by a factorisation machine"),
	training[MLPTrain]("mlp", "numbers or classes by a multilayer perceptron"),
	training[GBDTTrain]("gbdt", "numbers, classes or ranks by gradient boosted trees"),
	training[ForestTrain]("forest", "numbers or classes by a random forest, extra trees or a single tree"),
	training[GLMTrain]("glm", "means by generalised linear models: Gaussian, binomial, Poisson, gamma, Tweedie"),
}

// kindOf is what commands have to know of the models of an algorithm.
type kindOf struct {
	goal        goal   // of one with --task, that of regression; see kindOfModel
	prediction  string // the column that is added
	probability string // the vector column of classes or components, "" where there is none
	distance    string // the column of distances, "" where there is none
	margins     bool   // it holds margins, no probabilities
	curve       bool   // models have a record of their training
	terms       bool   // models have coefficients
	trees       bool   // models are trees, for which features have importances
}

var kindsOf = map[string]kindOf{
	"kmeans":     {goal: clustersGoal, prediction: "cluster", distance: "distance", curve: true},
	"gmm":        {goal: clustersGoal, prediction: "component", probability: "probabilities", curve: true},
	"linear":     {goal: numbersGoal, prediction: "prediction", curve: true, terms: true},
	"logistic":   {goal: classesGoal, prediction: "prediction", probability: "probability", curve: true, terms: true},
	"naivebayes": {goal: classesGoal, prediction: "prediction", probability: "probability"},
	"linear-svc": {goal: classesGoal, prediction: "prediction", probability: "decision", margins: true, curve: true, terms: true},
	"linear-svr": {goal: numbersGoal, prediction: "prediction", curve: true, terms: true},
	"glm":        {goal: numbersGoal, prediction: "prediction", curve: true, terms: true},
	"fm":         {goal: numbersGoal, prediction: "prediction", probability: "probability", curve: true, terms: true},
	"gbdt":       {goal: numbersGoal, prediction: "prediction", probability: "probability", curve: true, trees: true},
	"forest":     {goal: numbersGoal, prediction: "prediction", probability: "probability", trees: true},
	"mlp":        {goal: numbersGoal, prediction: "prediction", probability: "probability", curve: true},
}

// kindOfModel returns what is known of a model, and whether it is one that predicts.
func kindOfModel(m model.Model) (kindOf, bool) {
	k, ok := kindsOf[m.Kind()]
	if len(classesOf(m)) > 0 {
		k.goal = classesGoal
	}
	if boosted, is := m.(*gbdt.Model); is && boosted.Objective == gbdt.LambdaMART {
		k.goal = ranksGoal
	}
	return k, ok
}

// thresholdOf returns the threshold that a model, or the stage that makes it, was given; 0 where
// it has the usual one.
func thresholdOf(of any) float64 {
	switch of := of.(type) {
	case *logistic.Model:
		return of.Threshold
	case logistic.Params:
		return of.Threshold
	}
	return 0
}

// KMeansTrain are the flags of training k-means.
type KMeansTrain struct {
	TrainArgs
	K        int     `want:"1..2147483647" required:"" placeholder:"N" help:"Number of clusters."`
	Init     string  `help:"First centres: random, k-means++ or 'k-means||' (the default)." enum:"random,k-means++,k-means||" default:"k-means||"`
	Distance string  `help:"What near means: euclidean (the default) or cosine." enum:"euclidean,cosine" default:"euclidean"`
	MaxIter  int     `want:"1..2147483646" placeholder:"N" help:"Largest number of updates of the centres (default: 100)."`
	Tol      float64 `want:"0.." zero:"-1" placeholder:"DISTANCE" help:"Training ends when no centre moved farther than this (default: 0.0001; 0: when none moves)."`

	InitSteps    int              `want:"1..2147483647" of:"init=k-means||" placeholder:"N" help:"Of k-means||: rounds in which candidates for centres are drawn (default: 3)."`
	Oversampling float64          `want:">0..2147483647" of:"init=k-means||" placeholder:"N" help:"Of k-means||: candidates that a round draws, on average (default: twice --k)."`
	Precision    kmeans.Precision `placeholder:"NAME" help:"double (the default), or single: distances in float32, with half the memory." default:"double"`
}

func (KMeansTrain) goal() goal { return clustersGoal }

// Validate refuses what cannot be meant.
func (a KMeansTrain) Validate(k *kong.Context) error { return refuse(k, a.validate(a.goal(), a.stage)) }

func (a KMeansTrain) stage(c columns) model.Stage {
	p := kmeans.Params{VectorCol: c.vector, WeightCol: c.weight, K: a.K, Init: inits[a.Init], InitSteps: a.InitSteps, Oversampling: a.Oversampling,
		Precision: a.Precision, MaxIter: a.MaxIter, Tol: a.Tol, PredictionCol: c.prediction, DistanceCol: c.distance}
	if a.Distance == "cosine" {
		p.Distance = kmeans.Cosine
	}
	if c.skip {
		p.NonFinite = kmeans.Skip
	}
	return p
}

// GMMTrain are the flags of training mixtures.
type GMMTrain struct {
	TrainArgs
	K              int            `want:"1..2147483647" required:"" placeholder:"N" help:"Number of components."`
	Covariance     gmm.Covariance `placeholder:"SHAPE" help:"Shape of the components: full (the default), diagonal, spherical, or tied, the same for all." default:"full"`
	Restarts       int            `want:"1..1000" placeholder:"N" help:"How often to begin anew; the most likely mixture is kept (default: 1)."`
	Regularization float64        `want:"0.." zero:"-1" placeholder:"VARIANCE" help:"Added to all variances; 0: nothing (default: 0.000001)."`
	MaxIter        int            `want:"1..2147483645" placeholder:"N" help:"Largest number of updates (default: 200)."`
	Tol            float64        `want:"0.." zero:"-1" placeholder:"GAIN" help:"Training ends when an update raised the mean log-likelihood by no more; 0: when none does (default: 0.000001)."`
}

func (GMMTrain) goal() goal { return clustersGoal }

// Validate refuses what cannot be meant.
func (a GMMTrain) Validate(k *kong.Context) error { return refuse(k, a.validate(a.goal(), a.stage)) }

func (a GMMTrain) stage(c columns) model.Stage {
	return gmm.Params{VectorCol: c.vector, WeightCol: c.weight, K: a.K, Covariance: a.Covariance, Restarts: a.Restarts,
		Regularization: a.Regularization, MaxIter: a.MaxIter, Tol: a.Tol, PredictionCol: c.prediction, ProbabilityCol: c.probability, Skip: c.skip}
}

// PenaltyArgs are the flags of models that are linear in the features.
type PenaltyArgs struct {
	L1            float64 `want:"0.." name:"l1" placeholder:"STRENGTH" help:"Strength of the lasso penalty: L1·Σ|w| is added to the mean loss (default: 0)."`
	L2            float64 `want:"0.." name:"l2" placeholder:"STRENGTH" help:"Strength of the ridge penalty: ½·L2·Σw² is added to the mean loss (default: 0)."`
	NoStandardize bool    `help:"Put the penalty on coefficients of the features as they are, not divided by their deviations."`
	NoIntercept   bool    `help:"Leave the intercept out."`
	Offset        string  `param:"OffsetCol" placeholder:"COLUMN" help:"Column of numbers that are added to what the model gives, in training and prediction."`
}

// beside is the column that is read beside features and label.
func (a PenaltyArgs) beside() map[string][]string {
	return map[string][]string{"--offset": one(a.Offset)}
}

// OptimiserArgs are the flags of algorithms that minimise a loss.
type OptimiserArgs struct {
	Method  string  `enum:"auto,lbfgs,owlqn,newton,gd,sgd" default:"auto" placeholder:"NAME" help:"Optimiser: lbfgs, owlqn, newton, gd, sgd, or auto (the default): what suits features and penalty."`
	MaxIter int     `want:"1..2147483647" placeholder:"N" help:"Largest number of iterations, of sgd passes over the data (default: 100; of svc and svr 1000, of fm and mlp 200)."`
	Tol     float64 `want:"0.." zero:"-1" placeholder:"NORM" help:"Training ends when the gradient is as small as this, relative to the first if that is above 1; 0: never (default: 0.000001; of glm 0.00000001, of fm 0.00001, of mlp 0.0001)."`
	Batch   int     `want:"1..2147483647" of:"method=sgd" param:"Stochastic.Batch" placeholder:"ROWS" help:"Rows of a step of sgd (default: about one a shard)."`
	LossTol float64 `want:"0.." placeholder:"SHARE" help:"Training ends, too, when the objective falls by no more than this share of it (default: it does not)."`

	Rate          float64 `want:">0.." of:"method=sgd" param:"Stochastic.Rate" placeholder:"RATE" help:"First learning rate of sgd (default: what suits --update and --schedule)."`
	Update        string  `of:"method=sgd" param:"Stochastic.Update" enum:"plain,adam,adagrad" default:"plain" placeholder:"NAME" help:"What sgd makes of gradients: plain steps (the default), adam or adagrad."`
	Schedule      string  `of:"method=sgd" param:"Stochastic.Schedule" enum:"inverse-scaling,constant,exponential,optimal" default:"inverse-scaling" placeholder:"NAME" help:"How the learning rate of sgd falls: inverse-scaling (the default), constant, exponential, or optimal, for convex losses with a ridge penalty, so not of fm and mlp."`
	SchedulePower float64 `want:">0.." of:"method=sgd,schedule=inverse-scaling" param:"Stochastic.Power" placeholder:"POWER" help:"Of inverse-scaling: the power of the steps that divides the rate (default: 0.5)."`
	Decay         float64 `want:">0..1" of:"method=sgd,schedule=exponential" param:"Stochastic.Decay" placeholder:"SHARE" help:"Of exponential: what the rate is multiplied with after each pass (default: 0.95)."`
	Momentum      float64 `want:"0..<1" of:"method=sgd,update=plain" param:"Stochastic.Momentum" placeholder:"SHARE" help:"Share of the last step that plain sgd goes on with (default: 0)."`
	Nesterov      bool    `of:"method=sgd,momentum" param:"Stochastic.Nesterov" help:"Make the momentum that of Nesterov."`
	Average       bool    `of:"method=sgd" param:"Stochastic.Average" help:"Of sgd: return the mean of the parameters of the last half of the steps."`
}

// StepArgs is a flag of the algorithms whose parameters may end training.
type StepArgs struct {
	StepTol float64 `want:"0.." placeholder:"SIZE" help:"Training ends, too, when no parameter moves more than this (default: it does not)."`
}

var methods = map[string]optim.Method{"lbfgs": optim.LBFGS, "owlqn": optim.OWLQN, "newton": optim.Newton, "gd": optim.GD, "sgd": optim.SGD}

var (
	updates   = map[string]optim.Update{"plain": optim.Plain, "adam": optim.Adam, "adagrad": optim.AdaGrad}
	schedules = map[string]optim.Schedule{
		"inverse-scaling": optim.InverseScaling, "constant": optim.Constant, "exponential": optim.Exponential, "optimal": optim.Optimal,
	}
)

func (o OptimiserArgs) method() optim.Method { return methods[o.Method] }

func (o OptimiserArgs) stochastic() optim.Stochastic {
	return optim.Stochastic{Batch: o.Batch, Rate: o.Rate, Update: updates[o.Update], Schedule: schedules[o.Schedule], Power: o.SchedulePower,
		Decay: o.Decay, Momentum: o.Momentum, Nesterov: o.Nesterov, Average: o.Average}
}

// LinearTrain are the flags of linear regression.
type LinearTrain struct {
	TrainArgs
	PenaltyArgs
	OptimiserArgs
	StepArgs
	Huber       float64 `want:">0.." placeholder:"RESIDUAL" help:"Make the loss linear in residuals beyond this, so that outliers count for less (default: squares throughout)."`
	NoInference bool    `help:"Leave out standard errors, t and p values, which take one more read of the rows."`
}

func (LinearTrain) goal() goal { return numbersGoal }

// Validate refuses what cannot be meant.
func (a LinearTrain) Validate(k *kong.Context) error { return refuse(k, a.validate(a.goal(), a.stage)) }

func (a LinearTrain) stage(c columns) model.Stage {
	return linear.Params{VectorCol: c.vector, FeatureCols: c.features, LabelCol: c.label, PredictionCol: c.prediction, WeightCol: c.weight, Skip: c.skip,
		L1: a.L1, L2: a.L2, NoStandardize: a.NoStandardize, NoIntercept: a.NoIntercept, OffsetCol: a.Offset, Huber: a.Huber, NoInference: a.NoInference,
		Method: a.method(), MaxIter: a.MaxIter, Tol: a.Tol, LossTol: a.LossTol, StepTol: a.StepTol, Stochastic: a.stochastic()}
}

// LogisticTrain are the flags of logistic regression.
type LogisticTrain struct {
	TrainArgs
	PenaltyArgs
	OptimiserArgs
	StepArgs
	Family       logistic.Family `placeholder:"NAME" help:"How classes are modelled: binary, multinomial, or auto (the default), by their number." default:"auto"`
	ClassWeights pairs[float64]  `want:">0.." placeholder:"CLASS=WEIGHT" help:"Factors of the weights of the rows of classes, such as yes=2;no=1."`
	Balanced     bool            `help:"Make all classes weigh the same."`
	Inference    bool            `help:"Add standard errors, z and p values to the coefficients: for two classes, without a penalty."`
	Threshold    float64         `want:">0..<1" placeholder:"PROBABILITY" help:"Probability above which the second of two classes is predicted (default: 0.5)."`
}

func (LogisticTrain) goal() goal { return classesGoal }

// Validate refuses what cannot be meant.
func (a LogisticTrain) Validate(k *kong.Context) error {
	return refuse(k, a.validate(a.goal(), a.stage))
}

func (a LogisticTrain) stage(c columns) model.Stage {
	return logistic.Params{VectorCol: c.vector, FeatureCols: c.features, LabelCol: c.label, PredictionCol: c.prediction, ProbabilityCol: c.probability, WeightCol: c.weight, Skip: c.skip,
		L1: a.L1, L2: a.L2, NoStandardize: a.NoStandardize, NoIntercept: a.NoIntercept, OffsetCol: a.Offset,
		Family: a.Family, ClassWeights: a.ClassWeights, Balanced: a.Balanced, Threshold: a.Threshold, Inference: a.Inference,
		Method: a.method(), MaxIter: a.MaxIter, Tol: a.Tol, LossTol: a.LossTol, StepTol: a.StepTol, Stochastic: a.stochastic()}
}

// NaiveBayesTrain are the flags of naive Bayes.
type NaiveBayesTrain struct {
	TrainArgs
	Family        naivebayes.Family `placeholder:"FAMILY" help:"How features are distributed within a class: gaussian (the default), multinomial or complement for counts, bernoulli." default:"gaussian"`
	Smoothing     float64           `want:">0.." of:"family=multinomial/complement/bernoulli" placeholder:"COUNT" help:"Added to each count (default: 1)."`
	VarSmoothing  float64           `want:">0.." of:"family=gaussian" placeholder:"SHARE" help:"Of gaussian: this times the largest variance is added to all (default: 0.000000001)."`
	Binarize      float64           `want:".." of:"family=bernoulli" placeholder:"VALUE" help:"Of bernoulli: the value above which a feature is there (default: 0)."`
	Priors        pairs[float64]    `want:">0..1" of:"family!=complement" placeholder:"CLASS=SHARE" help:"Probabilities of the classes before a row is seen, all of them, such as yes=0.2;no=0.8 (default: as often as they occur)."`
	UniformPriors bool              `of:"family!=complement" help:"Take all classes as equally likely before a row is seen."`
}

func (NaiveBayesTrain) goal() goal { return classesGoal }

// Validate refuses what cannot be meant.
func (a NaiveBayesTrain) Validate(k *kong.Context) error {
	return refuse(k, a.validate(a.goal(), a.stage))
}

func (a NaiveBayesTrain) stage(c columns) model.Stage {
	return naivebayes.Params{VectorCol: c.vector, FeatureCols: c.features, LabelCol: c.label, PredictionCol: c.prediction, ProbabilityCol: c.probability, WeightCol: c.weight, Skip: c.skip,
		Family: a.Family, Smoothing: a.Smoothing, VarSmoothing: a.VarSmoothing, Binarize: a.Binarize, Priors: a.Priors, UniformPriors: a.UniformPriors}
}
