package logistic

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// Params are the parameters of Train. The zero value of a field means its default. Only
// LabelCol has no default.
type Params struct {
	// VectorCol names the column of the features, a dense or sparse vector. Alternatively,
	// FeatureCols names number columns, which are joined in the given order. If both are empty,
	// the features are the dataset's only vector column.
	VectorCol   string
	FeatureCols []string
	// LabelCol names the column of the labels, of any type. The classes are the distinct labels
	// in ascending order: numbers by value, text by bytes, false before true. LabelCol is
	// required.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1.
	WeightCol string
	// OffsetCol names a column of numbers that are added to the margins, in training and
	// wherever the model is applied to a dataset. It may be set only for two classes. Empty
	// means no offset.
	OffsetCol string
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and "probability".
	PredictionCol, ProbabilityCol string
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool

	// Family is the model of the classes; the zero value selects the family by the number of
	// classes.
	Family Family
	// ClassWeights has factors for the weights of rows. The keys are classes as texts; rows of
	// other classes keep their weights. Balanced gives all classes the same total weight
	// instead. ClassWeights and Balanced do not change the standard deviations by which
	// features are scaled.
	ClassWeights map[string]float64
	Balanced     bool
	// With two classes, the second class is predicted if its probability is above Threshold.
	// Threshold must be above 0 and below 1; 0 means 0.5.
	Threshold float64

	// NoIntercept omits the intercepts.
	NoIntercept bool
	// NoStandardize applies the penalty to the coefficients of unscaled features. By default
	// the penalty applies to the coefficients of features divided by their standard deviations.
	// Without a penalty NoStandardize changes nothing.
	NoStandardize bool
	// L1 and L2 are the strengths of the penalty, 0 or more: L1·Σ|w| + ½·L2·Σw² is added to the
	// mean weighted loss. Intercepts are not penalised. With W the total weight, scikit-learn's
	// C corresponds to L2 = 1/(C·W) and NoStandardize.
	L1, L2 float64
	// Inference adds the table of standard errors, z statistics and p values, which needs one
	// more read of the rows. It is available for two classes without a penalty.
	Inference bool

	// Method is the optimiser. With an L1 penalty the zero value means OWLQN. Otherwise it
	// means Newton's method for up to 32 parameters (up to 64 for more than two classes with at
	// least 7 dense features), and LBFGS for more parameters. This LBFGS changes to Newton's
	// method if features correlate and there are at most 512 parameters.
	Method optim.Method
	// MaxIter is the largest number of iterations; 0 means 100.
	MaxIter int
	// Tol ends training when the largest component of the gradient, with respect to
	// standardised coefficients, is at most Tol·max(1, g), where g is the largest component at
	// the start of training. 0 means 1e-6; a negative value turns the test off.
	Tol float64
	// LossTol ends training when an iteration reduces the objective by at most LossTol times
	// its value. StepTol ends training when each parameter p moves by at most StepTol·max(1,
	// |p|). 0 turns a test off.
	LossTol, StepTol float64
	// Stochastic are the settings of the method SGD.
	Stochastic optim.Stochastic
	// Start is a model with the same features and classes, from which training starts; nil
	// means zeros.
	Start *Model
	// Seed is the seed for the order of rows in SGD; 0 means the seed of the job.
	Seed uint64
}

// Family is a model of the classes.
type Family int

const (
	// Auto selects Binary for two classes and Multinomial for more.
	Auto Family = iota
	// Binary has one set of coefficients for two classes: the margin is the log odds of the
	// second class.
	Binary
	// Multinomial has one set of coefficients for each class: probabilities are proportional to
	// the exponentials of the margins.
	Multinomial
)

var families = enum.Names[Family]{Type: "Family", What: "family", Names: []string{"auto", "binary", "multinomial"}}

// String returns "auto", "binary" or "multinomial".
func (f Family) String() string { return families.String(f) }

// MarshalText implements encoding.TextMarshaler.
func (f Family) MarshalText() ([]byte, error) { return families.Text(f) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (f *Family) UnmarshalText(text []byte) error {
	if families.Parse(f, text) != nil {
		return fmt.Errorf("unknown family %q: want auto, binary or multinomial", text)
	}
	return nil
}

// kind is the kind of this package's models. defaultProbability and defaultThreshold are the
// defaults of ProbabilityCol and Threshold.
const (
	kind               = "logistic"
	defaultProbability = "probability"
	defaultThreshold   = 0.5
)

// Validate returns all errors in the parameters.
func (p Params) Validate() error {
	errs := []error{p.common().Validate()}
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if p.Family < Auto || p.Family > Multinomial {
		bad("%v is not one of the package's constants", p.Family)
	}
	if !(p.Threshold >= 0 && p.Threshold < 1) {
		bad("Threshold is %v: want a probability above 0 and below 1, or 0 for %v", p.Threshold, defaultThreshold)
	}
	if p.Threshold != 0 && p.Family == Multinomial {
		bad("Threshold is for two classes, and Family is multinomial")
	}
	if p.Inference && p.common().Penalised() {
		bad("Inference asks for standard errors, which are not defined with a penalty: leave L1 and L2 out")
	}
	if p.Inference && p.Family == Multinomial {
		bad("Inference asks for standard errors, which are for two classes, and Family is multinomial")
	}
	if p.OffsetCol != "" && p.Family == Multinomial {
		bad("OffsetCol is for two classes, and Family is multinomial")
	}
	if p.Balanced && len(p.ClassWeights) > 0 {
		bad("ClassWeights are given and Balanced is set: choose one")
	}
	if name := cmp.Or(p.PredictionCol, linearmodel.Prediction); name == cmp.Or(p.ProbabilityCol, defaultProbability) {
		bad("PredictionCol and ProbabilityCol are both %q", name)
	}
	return errors.Join(errs...)
}

// common returns the parameters that all linear models share.
func (p Params) common() linearmodel.Params {
	return linearmodel.Params{
		VectorCol: p.VectorCol, FeatureCols: p.FeatureCols, LabelCol: p.LabelCol, WeightCol: p.WeightCol, OffsetCol: p.OffsetCol,
		Skip: p.Skip, NoIntercept: p.NoIntercept, NoStandardize: p.NoStandardize, L1: p.L1, L2: p.L2, Inference: p.Inference,
		Method: p.Method, MaxIter: p.MaxIter, Tol: p.Tol, LossTol: p.LossTol, StepTol: p.StepTol, Stochastic: p.Stochastic, Seed: p.Seed,
	}
}

// loss returns the loss for the classes of the labels.
func (p Params) loss(f *rows.Facts) (objective.Loss, error) {
	k := len(f.Classes)
	if err := rows.TwoClasses(p.LabelCol, f.Classes); err != nil {
		return nil, err
	}
	switch {
	case k == 2 && p.Family != Multinomial:
		return objective.Logistic{}, nil
	case p.Family == Binary:
		return nil, fmt.Errorf("the labels have %d classes, and Family is binary", k)
	case k > 2 && p.Threshold != 0:
		return nil, fmt.Errorf("the labels have %d classes: Threshold is for two", k)
	case k > 2 && p.Inference:
		return nil, fmt.Errorf("the labels have %d classes: Inference asks for standard errors, which are for two", k)
	case k > 2 && p.OffsetCol != "":
		return nil, fmt.Errorf("the labels have %d classes: OffsetCol is for two", k)
	}
	return objective.Softmax{}, nil
}

// Train fits a logistic regression and returns the model as a dataset of one row. Its column
// "model" holds the bytes that Model.Encode returns. Collect the dataset and read it with
// ModelOf, or pass it to Predict. A second column has nulls and the type of the labels.
//
// The training queue is named "logistic". For the start and every iteration it reports "loss",
// which is the objective, "gradient norm", "step" and "reads". Errors in the parameters, or in
// the columns that they name, are reported when the job is built, with the caller's line. If
// classes are separable and there is no penalty, there is no optimum: training stops with the
// reason "diverging", and the run's report counts a warning.
func Train(d *engine.Dataset, p Params) *engine.Dataset {
	const op = "logistic.Train"
	if _, refused := model.Begin(op, d, p.Validate()); refused != nil {
		return refused
	}
	t := linearmodel.Training{
		Op: op, Queue: kind, Params: p.common(), Loss: objective.Logistic{}, LossOf: p.loss,
		ClassWeights: p.ClassWeights, Balanced: p.Balanced, Finish: p.finish,
	}
	if p.Start != nil {
		t.Start, t.StartClasses = &p.Start.Model, p.Start.Classes.Values
	}
	return t.Add(d)
}

// Kind implements model.Stage.
func (p Params) Kind() string { return kind }

// Fit implements model.Stage. It calls Train.
func (p Params) Fit(d *engine.Dataset) *engine.Dataset { return Train(d, p) }

// Apply implements model.Stage. It calls Predict with the parameters' columns.
func (p Params) Apply(d, made *engine.Dataset) *engine.Dataset {
	return Predict(d, made, PredictOptions{PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol})
}
