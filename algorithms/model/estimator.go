package model

import "github.com/superstep-ml/superstep/engine"

// Estimator is a Stage that the command line can train. It is a struct of parameters whose
// columns have the usual names: VectorCol, FeatureCols, LabelCol, WeightCol, GroupCol,
// PredictionCol, ProbabilityCol or DecisionCol, DistanceCol, CategoricalCols; and Skip, or
// NonFinite. The command line sets those that exist, by name.
type Estimator interface {
	Stage
	Predictor
	// Validate returns everything that is wrong with the parameters.
	Validate() error
	// Command tells how the command line trains it.
	Command() Command
}

// Command is what a command line has to know about an Estimator.
type Command struct {
	// Name is its name on the command line, and About says in a line what it does.
	Name, About string
	Flags       []Flag
	// Curve says that models have a record of their training, and Coefficients that they have
	// coefficients to draw.
	Curve, Coefficients bool
	// Trees says that models consist of trees. Trees read text as categories, take missing
	// values as they are, and give features importances.
	Trees bool
}

// Flag is a flag of a command line that sets a parameter.
type Flag struct {
	// Name is the name of the flag without dashes. Param is the name of the field that it sets,
	// such as "Stochastic.Batch"; empty means none.
	Name, Param string
	// Tag is the struct tag of the flag. The parser knows the keys help, placeholder, default,
	// enum, required and sep, and the command line want, zero, of and reads. A flag with an
	// enum takes one of the enum's texts.
	Tag string
	// Values maps texts of the enum to values of the parameter, where the parameter does not
	// read text. Texts that are not in it stand for the zero value.
	Values map[string]any
	// Words maps names of constants, as messages of the package have them, to texts of the
	// flag.
	Words map[string]string
	// As is a value of the type that reads the flag, if this is not the parameter's type.
	As any
}

// EvalFitter is a Stage that can evaluate while it trains.
type EvalFitter interface {
	// FitEval is Fit with rows to evaluate on, which are called "test"; nil means none.
	FitEval(rows, eval *engine.Dataset) *engine.Dataset
}

// TrainingSetup is what a command line does besides training an Estimator.
type TrainingSetup struct {
	// Tests says that there are rows to evaluate on. Prepares says that features are first made
	// from the columns.
	Tests, Prepares bool
}

// SetupChecker is an Estimator with parameters that some setups do not allow.
type SetupChecker interface {
	// CheckSetup returns the conflicts between parameters and setup, in the words of flags.
	CheckSetup(s TrainingSetup) []error
}

// TaskFlag is the flag of estimators that predict either numbers or classes.
var TaskFlag = Flag{Name: "task", Param: "Task", Tag: `required:"" enum:"regression,classification" placeholder:"TASK" help:"What is predicted: numbers (regression) or classes (classification)."`}

// ClassWeightFlags are the flags of classifiers that weigh classes.
var ClassWeightFlags = []Flag{
	{Name: "class-weights", Param: "ClassWeights", Tag: `want:">0.." placeholder:"CLASS=WEIGHT" help:"Factors for the weights of rows, by class, such as yes=2;no=1."`},
	{Name: "balanced", Param: "Balanced", Tag: `help:"Make all classes weigh the same."`},
}
