package mlp

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/internal/nonconvex"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Params are the parameters of Train. The zero value of a field means its default. Only
// LabelCol has no default. Params are a stage of pipelines.
type Params struct {
	// VectorCol names the column of the features, a dense or sparse vector. Alternatively,
	// FeatureCols names number columns, which are joined in the given order. If both are empty,
	// the features are the dataset's only vector column.
	VectorCol   string
	FeatureCols []string
	// LabelCol names the column of the labels: numbers for Regression, classes of any type for
	// Classification. LabelCol is required.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1.
	WeightCol string
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and, for Classification, "probability".
	PredictionCol, ProbabilityCol string
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool

	// Task is what the network predicts; the zero value is Regression.
	Task Task
	// Hidden has the number of units of each hidden layer, in order. nil means one layer of 32
	// units. An empty slice that is not nil means no hidden layer, which gives a linear model.
	Hidden []int
	// Activation is the activation function of the hidden units; the zero value is ReLU.
	Activation Activation
	// NoStandardize uses features unchanged. By default a dense feature x is read as (x −
	// mean)/deviation, with mean and standard deviation over the rows, and a sparse feature x
	// is read as x/deviation.
	NoStandardize bool
	// L2 is the strength of the penalty: ½·L2·Σw² is added to the mean weighted loss, where the
	// sum is over all weights except biases. scikit-learn's alpha corresponds to L2 times the
	// number of rows.
	L2 float64

	// Method is the optimiser: LBFGS, GD or SGD. The zero value means LBFGS.
	Method optim.Method
	// MaxIter is the largest number of iterations, or of epochs for SGD; 0 means 200.
	MaxIter int
	// Tol ends training when the largest component of the gradient is at most Tol·max(1, g),
	// where g is the largest component at the start of training. 0 means 1e-4; a negative value
	// turns the test off.
	Tol float64
	// LossTol ends training when an iteration reduces the objective by at most LossTol times
	// its value; 0 turns the test off.
	LossTol float64
	// Stochastic are the settings of the method SGD.
	Stochastic optim.Stochastic
	// Seed is the seed of the initial weights and of the order of rows in SGD; 0 means the seed
	// of the job.
	Seed uint64
}

const (
	defaultHidden = 32
	defaultTol    = 1e-4
	maxUnits      = 1 << 20
)

var _ model.Stage = Params{}

// Kind returns "mlp".
func (Params) Kind() string { return Kind }

// Fit implements model.Stage. It calls Train.
func (p Params) Fit(rows *engine.Dataset) *engine.Dataset { return Train(rows, p) }

// Apply implements model.Stage. It calls Predict with the parameters' columns.
func (p Params) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return Predict(rows, m, PredictOptions{PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol})
}

// Validate returns all errors in the parameters.
func (p Params) Validate() error {
	errs := append(p.common().Problems("a network's"), enum.Check(p.Activation)...)
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	for i, units := range p.Hidden {
		if units < 1 || units > maxUnits {
			bad("Hidden[%d] is %d: want 1 to %d units", i, units, maxUnits)
		}
	}
	if !(p.L2 >= 0 && kernel.Finite(p.L2)) {
		bad("L2 is %v: want a number of 0 or more", p.L2)
	}
	return errors.Join(errs...)
}

// common returns the parameters that all estimators with nonconvex losses share.
func (p Params) common() nonconvex.Params {
	return nonconvex.Params{
		VectorCol: p.VectorCol, FeatureCols: p.FeatureCols, LabelCol: p.LabelCol, WeightCol: p.WeightCol,
		PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol, Skip: p.Skip, Task: p.Task,
		Method: p.Method, MaxIter: p.MaxIter, Tol: cmp.Or(p.Tol, defaultTol), LossTol: p.LossTol, Stochastic: p.Stochastic, Seed: p.Seed,
	}
}

// withDefaults returns valid parameters with every zero replaced by its default.
func (p Params) withDefaults(jobSeed uint64) Params {
	if p.Hidden == nil {
		p.Hidden = []int{defaultHidden}
	}
	p.Seed = cmp.Or(p.Seed, jobSeed)
	return p
}

// sizes returns the sizes of all layers, given the facts of the rows. The first size is the
// number of features.
func (p Params) sizes(f *rows.Facts) ([]int, error) {
	sizes := append(append([]int{f.Dim()}, p.Hidden...), outputs(p.Task, len(f.Classes)))
	const most = 1 << 27
	n := 0.0
	for l, out := range sizes[1:] {
		n += float64(float64(sizes[l]+1) * float64(out))
	}
	if n > most {
		return nil, fmt.Errorf("layers of %v units have %.0f parameters, at most %d are allowed: take fewer units, or fewer features", sizes, n, most)
	}
	return sizes, nil
}

// Task is what a network predicts.
type Task = signature.Task

const (
	// Regression predicts a number; the loss is half the squared difference.
	Regression = signature.Regression
	// Classification predicts a class; the loss is the negative logarithm of the probability of
	// the row's class. With two classes there is one output, the log odds of the second class.
	// With more classes there is one output for each class, and softmax converts the outputs to
	// probabilities.
	Classification = signature.Classification
)

// outputs returns the number of outputs of a network for the given number of classes.
func outputs(t Task, classes int) int {
	if t == Regression || classes == 2 {
		return 1
	}
	return classes
}

// Activation is the function that a hidden unit applies to its sum.
type Activation int

const (
	// ReLU is max(0, z).
	ReLU Activation = iota
	// Tanh is the hyperbolic tangent.
	Tanh
	// Logistic is 1/(1+e⁻ᶻ).
	Logistic
)

var activations = enum.Names[Activation]{Type: "Activation", What: "activation", Names: []string{"relu", "tanh", "logistic"}}

// String returns "relu", "tanh" or "logistic".
func (a Activation) String() string { return activations.String(a) }

// MarshalText implements encoding.TextMarshaler.
func (a Activation) MarshalText() ([]byte, error) { return activations.Text(a) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (a *Activation) UnmarshalText(text []byte) error { return activations.Parse(a, text) }
