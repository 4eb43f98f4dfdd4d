package model

import "github.com/superstep-ml/superstep/engine"

// Estimator is a Stage that the command line can train. It is a struct of parameters. The
// fields that name columns must be called VectorCol, FeatureCols, LabelCol, WeightCol,
// GroupCol, PredictionCol, ProbabilityCol or DecisionCol, DistanceCol and CategoricalCols; the
// field about unusable rows must be called Skip or NonFinite. The command line sets each of
// these fields that the struct has.
type Estimator interface {
	Stage
	Predictor
	// Validate returns all errors in the parameters.
	Validate() error
	// Command describes the estimator to the command line.
	Command() Command
}

// Command has the information about an Estimator that a command line needs.
type Command struct {
	// Name is the estimator's name on the command line. About is a description in one line.
	Name, About string
	Flags       []Flag
	// Curve is set if models have a record of their training. Coefficients is set if models
	// have coefficients for a chart.
	Curve, Coefficients bool
	// Trees is set if models consist of trees. Trees read text as categories, accept missing
	// values, and give importances of features.
	Trees bool
}

// Flag is a flag of a command line that sets a parameter.
type Flag struct {
	// Name is the name of the flag without dashes. Param is the name of the field that the flag
	// sets, such as "Stochastic.Batch". Param is empty if the flag sets no field.
	Name, Param string
	// Tag is the struct tag of the flag. The flag parser interprets the keys help, placeholder,
	// default, enum, required and sep. The command line interprets the keys want, zero, of and
	// reads. The value of a flag with an enum must be one of the enum's texts.
	Tag string
	// Values maps texts of the enum to values of the parameter. It is set if the parameter's
	// type cannot parse text. Texts that are not in Values mean the zero value.
	Values map[string]any
	// Words maps names of constants, as they occur in error messages of the package, to the
	// texts that the flag accepts for them.
	Words map[string]string
	// As is a value of the type that parses the flag. It is nil if the parameter's type parses
	// the flag.
	As any
}

// EvalFitter is a Stage that can evaluate while it trains.
type EvalFitter interface {
	// FitEval does what Fit does, and evaluates on the rows eval during training, under the
	// name "test". If eval is nil, there is no evaluation.
	FitEval(rows, eval *engine.Dataset) *engine.Dataset
}

// TrainingSetup says what a command line does in addition to training an Estimator.
type TrainingSetup struct {
	// Tests is set if there are rows for evaluation. Prepares is set if features are first
	// computed from the columns.
	Tests, Prepares bool
}

// SetupChecker is an Estimator with parameters that cannot be used in some setups.
type SetupChecker interface {
	// CheckSetup returns the conflicts between the parameters and the setup s. Messages name
	// flags, not parameters.
	CheckSetup(s TrainingSetup) []error
}

// TaskFlag is the flag of estimators that predict either numbers or classes.
var TaskFlag = Flag{Name: "task", Param: "Task", Tag: `required:"" enum:"regression,classification" placeholder:"TASK" help:"What is predicted: numbers (regression) or classes (classification)."`}

// ClassWeightFlags are the flags of classifiers that weigh classes.
var ClassWeightFlags = []Flag{
	{Name: "class-weights", Param: "ClassWeights", Tag: `want:">0.." placeholder:"CLASS=WEIGHT" help:"Factors for the weights of rows, by class, such as yes=2;no=1."`},
	{Name: "balanced", Param: "Balanced", Tag: `help:"Make all classes weigh the same."`},
}
