package model

import "github.com/superstep-ml/superstep/engine"

// Estimator is a Stage that the command line can train. It is a struct of parameters whose
// columns have the usual names: VectorCol, FeatureCols, LabelCol, WeightCol, GroupCol,
// PredictionCol, ProbabilityCol or DecisionCol, DistanceCol, CategoricalCols; and Skip, or
// NonFinite. Those that it has are set by name.
type Estimator interface {
	Stage
	Predictor
	// Validate tells what is wrong with the parameters, all of it.
	Validate() error
	// Command tells how the command line trains it.
	Command() Command
}

// Command is what a command line has to know of an Estimator.
type Command struct {
	// Name is what it is called there, and About what it predicts, in a line.
	Name, About string
	Flags       []Flag
	// Curve says that models have a record of their training, and Coefficients that they have
	// some to draw.
	Curve, Coefficients bool
	// Trees says that models are of trees, which read text as categories and missing values as
	// they are, and give features importances.
	Trees bool
}

// Flag is a flag of a command line that sets a parameter.
type Flag struct {
	// Name is that of the flag without dashes, and Param that of the field, such as
	// "Stochastic.Batch". Without Param the flag sets none.
	Name, Param string
	// Tag is that of a field of flags: help, placeholder, default, enum, required and sep as the
	// parser knows them, and want, zero, of and reads as the command line does. With an enum, the
	// flag is read as one of its texts.
	Tag string
	// Values are what texts of the enum stand for, where the parameter does not read text; those
	// that are not there stand for its zero value.
	Values map[string]any
	// Words are texts of the flag by the names of constants that messages of the package have.
	Words map[string]string
	// As is a value of the type that reads the flag, if that is not the parameter's.
	As any
}

// EvalFitter is a Stage that measures while it trains.
type EvalFitter interface {
	// FitEval is Fit with rows to measure on, which are called "test"; nil: none.
	FitEval(rows, eval *engine.Dataset) *engine.Dataset
}

// TrainingSetup is what a command line does beside training an Estimator.
type TrainingSetup struct {
	// Tests says that there are rows to evaluate on, and Prepares that features are made of the
	// columns first.
	Tests, Prepares bool
}

// SetupChecker is an Estimator whose parameters do not go with every setup.
type SetupChecker interface {
	// CheckSetup tells what does not go together, in the words of flags.
	CheckSetup(s TrainingSetup) []error
}

// TaskFlag is the flag of estimators that predict either numbers or classes.
var TaskFlag = Flag{Name: "task", Param: "Task", Tag: `required:"" enum:"regression,classification" placeholder:"TASK" help:"What is predicted: regression, numbers, or classification."`}

// ClassWeightFlags are those of classifiers that weigh classes.
var ClassWeightFlags = []Flag{
	{Name: "class-weights", Param: "ClassWeights", Tag: `want:">0.." placeholder:"CLASS=WEIGHT" help:"Factors of the weights of the rows of classes, such as yes=2;no=1."`},
	{Name: "balanced", Param: "Balanced", Tag: `help:"Make all classes weigh the same."`},
}
