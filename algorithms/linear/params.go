package linear

import (
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// Params are the parameters of Train. The zero value of a field means its default. Only
// LabelCol has no default. The defaults are least squares without a penalty. Regression, Ridge,
// Lasso and ElasticNet set the penalty.
type Params struct {
	// VectorCol names the column of the features, a dense or sparse vector. Alternatively,
	// FeatureCols names number columns, which are joined in the given order. If both are empty,
	// the features are the dataset's only vector column.
	VectorCol   string
	FeatureCols []string
	// LabelCol names the column of numbers to be predicted. LabelCol is required.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1.
	WeightCol string
	// OffsetCol names a column of numbers that are added to the predictions, both in training
	// and wherever the model is applied to a dataset. Empty means no offset.
	OffsetCol string
	// PredictionCol names the column of predictions; empty means "prediction".
	PredictionCol string
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool

	// NoIntercept omits the intercept.
	NoIntercept bool
	// NoStandardize applies the penalty to the coefficients of unscaled features. By default
	// the penalty applies to the coefficients of features divided by their standard deviations.
	// Without a penalty NoStandardize changes nothing.
	NoStandardize bool
	// L1 and L2 are the strengths of the penalty, 0 or more: L1·Σ|w| + ½·L2·Σw² is added to the
	// mean weighted loss. The intercept is not penalised.
	L1, L2 float64
	// If Huber is above 0, the loss of a residual r is ½·r² up to |r| = Huber, and linear in
	// |r| beyond, so that outliers have less influence. Huber has the unit of the label. 0
	// means least squares: the loss is ½·r² for every residual.
	Huber float64
	// NoInference omits the table of standard errors, t statistics and p values, and the read
	// of the rows that the table needs. The table is computed only for least squares without a
	// penalty, and only if the type of the feature column says that there are at most 256
	// features.
	NoInference bool

	// Method is the optimiser. With an L1 penalty the zero value means OWLQN. Otherwise it
	// means Newton's method for up to 256 features in dense columns, or 32 in other columns,
	// and LBFGS for more features. For least squares, Newton's method solves the normal
	// equations. Where LBFGS was chosen in this way, training changes to Newton's method if
	// features correlate and there are at most 512 parameters.
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
	// Start is a model with the same features, from which training starts; nil means zeros.
	Start *Model
	// Seed is the seed for the order of rows in SGD; 0 means the seed of the job.
	Seed uint64
}

// Regression returns p without a penalty, for least squares.
func Regression(p Params) Params { return ElasticNet(0, 0, p) }

// Ridge returns p with the penalty ½·l2·Σw². With W the total weight, scikit-learn's
// Ridge(alpha) corresponds to l2 = alpha/W and NoStandardize.
func Ridge(l2 float64, p Params) Params {
	p.L1, p.L2 = 0, l2
	return p
}

// Lasso returns p with the penalty l1·Σ|w|, which makes some coefficients 0. scikit-learn's
// Lasso(alpha) corresponds to l1 = alpha and NoStandardize.
func Lasso(l1 float64, p Params) Params {
	p.L1, p.L2 = l1, 0
	return p
}

// ElasticNet returns p with the penalty strength·(ratio·Σ|w| + ½·(1−ratio)·Σw²). scikit-learn's
// ElasticNet(strength, ratio) has the same penalty, with NoStandardize.
func ElasticNet(strength, ratio float64, p Params) Params {
	p.L1, p.L2 = strength*ratio, strength*(1-ratio)
	return p
}

// kind is the kind of this package's models. manyFeatures is the largest number of features for
// which Newton's method and the table of standard errors are the default.
const (
	kind         = "linear"
	manyFeatures = 256
)

// Validate returns all errors in the parameters.
func (p Params) Validate() error {
	errs := []error{p.common().Validate()}
	if !(p.Huber >= 0) || math.IsInf(p.Huber, 0) {
		errs = append(errs, fmt.Errorf("the parameter Huber is %v: want a number above 0, or 0 for squares", p.Huber))
	}
	return errors.Join(errs...)
}

// common returns the parameters that all linear models share.
func (p Params) common() linearmodel.Params {
	return linearmodel.Params{
		VectorCol: p.VectorCol, FeatureCols: p.FeatureCols, LabelCol: p.LabelCol, WeightCol: p.WeightCol, OffsetCol: p.OffsetCol,
		Skip: p.Skip, NoIntercept: p.NoIntercept, NoStandardize: p.NoStandardize, L1: p.L1, L2: p.L2,
		Method: p.Method, MaxIter: p.MaxIter, Tol: p.Tol, LossTol: p.LossTol, StepTol: p.StepTol, Stochastic: p.Stochastic, Seed: p.Seed,
	}
}

// loss returns the loss as a function of a residual.
func (p Params) loss() objective.Loss {
	if p.Huber > 0 {
		return objective.Huber{Delta: p.Huber}
	}
	return objective.Squared{}
}

// Train fits a linear regression and returns the model as a dataset of one row. Its column
// "model" holds the bytes that Model.Encode returns. Collect the dataset and read it with
// ModelOf, or pass it to Predict.
//
// The training queue is named "linear". For the start and every iteration it reports "loss",
// which is the objective, "gradient norm", "step" and "reads". Errors in the parameters, or in
// the columns that they name, are reported when the job is built, with the caller's line.
func Train(d *engine.Dataset, p Params) *engine.Dataset {
	const op = "linear.Train"
	if _, refused := model.Begin(op, d, p.Validate()); refused != nil {
		return refused
	}
	t := linearmodel.Training{
		Op: op, Queue: kind, Params: p.common(), Loss: p.loss(), NewtonUpTo: manyFeatures,
		Finish: p.finish,
	}
	if !p.NoInference && p.Huber == 0 {
		t.TableUpTo = manyFeatures
	}
	if p.Start != nil {
		t.Start = &p.Start.Model
	}
	return t.Add(d)
}

// Kind implements model.Stage.
func (p Params) Kind() string { return kind }

// Fit implements model.Stage. It calls Train.
func (p Params) Fit(d *engine.Dataset) *engine.Dataset { return Train(d, p) }

// Apply implements model.Stage. It calls Predict with the parameters' PredictionCol.
func (p Params) Apply(d, made *engine.Dataset) *engine.Dataset {
	return Predict(d, made, PredictOptions{PredictionCol: p.PredictionCol})
}
